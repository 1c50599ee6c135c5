-- Releases expired leases.
WITH q AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.epoch, f.holder, f.reset_requested AS reset, {now} AS now, coalesce(j.value ->> 'd', 0) AS pause
      FROM json_each(:items) AS j
     CROSS JOIN holdfast_follow AS f ON f.shard = :shard AND f.workspace = j.value ->> 'w' AND f.reaction = j.value ->> 'r' AND f.stream = j.value ->> 's'
     WHERE f.epoch = j.value ->> 'e' AND f.until <= {now}
), held AS MATERIALIZED (
    SELECT h.holder, count(*) AS n, count(*) FILTER (WHERE h.crash_group > 0) AS crashed
      FROM holdfast_follow AS h INDEXED BY holdfast_follow_held
     WHERE h.shard = :shard AND (:workspace = '' OR h.workspace = :workspace) AND h.holder IS NOT NULL AND NOT h.quiet AND h.holder IN (SELECT q.holder FROM q)
     GROUP BY h.holder
)
UPDATE holdfast_follow AS f
   SET epoch = f.epoch + 1,
       deaths = CASE WHEN q.reset THEN 0 WHEN NOT f.quiet AND (f.crash_group = 1 OR f.crash_group = 0 AND held.n = 1) THEN f.deaths + 1 ELSE f.deaths END,
       crash_group = CASE WHEN q.reset THEN 0 WHEN f.quiet THEN f.crash_group
                          WHEN f.crash_group = 0 THEN held.n - held.crashed ELSE (min(f.crash_group, held.crashed) + 1) / 2 END,
       quiet = 0, lost = CASE WHEN f.quiet AND NOT q.reset THEN f.lost + 1 ELSE 0 END,
       error = CASE WHEN q.reset THEN NULL WHEN f.quiet THEN 'handed out to ' || f.holder || ', but no response arrived'
                    ELSE 'the lease of holder ' || f.holder || ' expired' END, holder = NULL, until = NULL,
       watermark = CASE WHEN q.reset THEN -1 ELSE f.watermark END, generation = f.generation + q.reset, reset_requested = 0,
       failures = CASE WHEN q.reset THEN 0 ELSE f.failures END, failing = CASE WHEN NOT q.reset THEN f.failing END,
       due_at = q.now + q.pause, rank = q.now + q.pause - (f.due_at - f.rank), updated_at = q.now
  FROM q LEFT JOIN held ON held.holder = q.holder
 WHERE f.shard = q.shard AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream AND f.epoch = q.epoch
RETURNING reaction
