-- Of which needs there is something due, by their places in the list. Each is looked
-- for in the index of what is live.
-- Leases that have not expired are told too, with the time that they have left, where that is short.
-- ?1 shard, ?2 workspace, neither looked at, ?3 shards as a JSON list, ?4 needs as a JSON list of [kind, name],
-- ?5 how much time is short, in ms
-- do
SELECT w.need, min(w.wait)
  FROM (SELECT q.key AS need, CASE q.value ->> 0
           WHEN 'held reaction' THEN (
                SELECT max(f.until - {now}, 0) FROM holdfast_follow AS f INDEXED BY holdfast_follow_held
                 WHERE f.shard = t.value AND f.holder IS NOT NULL AND f.until <= {now} + ?5 ORDER BY f.until LIMIT 1)
           WHEN 'held stream' THEN (
                SELECT max(s.until - {now}, 0) FROM holdfast_stream AS s INDEXED BY holdfast_stream_held
                 WHERE s.shard = t.value AND s.holder IS NOT NULL AND s.until <= {now} + ?5 ORDER BY s.until LIMIT 1)
           WHEN 'held operation' THEN (
                SELECT max(e.until - {now}, 0) FROM holdfast_entity AS e INDEXED BY holdfast_entity_held
                 WHERE e.shard = t.value AND e.holder IS NOT NULL AND e.until <= {now} + ?5 ORDER BY e.until LIMIT 1)
           WHEN 'held step' THEN (
                SELECT max(s.until - {now}, 0) FROM holdfast_step AS s INDEXED BY holdfast_step_held
                 WHERE s.shard = t.value AND s.holder IS NOT NULL AND s.until <= {now} + ?5 ORDER BY s.until LIMIT 1)
           WHEN 'held item' THEN ( -- in the batches that have items in hand
                SELECT max(min(i.until) - {now}, 0)
                  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
                  JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id
                 WHERE b.shard = t.value AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
                   AND i.holder IS NOT NULL AND i.until <= {now} + ?5)
           ELSE CASE WHEN CASE q.value ->> 0
       WHEN 'reaction' THEN EXISTS (
            SELECT 1 FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
             WHERE f.shard = t.value AND f.reaction = q.value ->> 1 AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now})
       WHEN 'operation' THEN EXISTS (
            SELECT 1 FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
             WHERE e.shard = t.value AND coalesce(e.queue, 'l:' || e.lifecycle) = q.value ->> 1 AND e.phase = 'due' AND e.due_at <= {now})
       WHEN 'step' THEN EXISTS (
            SELECT 1 FROM holdfast_step AS s INDEXED BY holdfast_step_due
             WHERE s.shard = t.value AND s.handler = q.value ->> 1 AND s.due_at IS NOT NULL AND s.due_at <= {now})
       WHEN 'batch' THEN EXISTS (
            SELECT 1 FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
             WHERE b.shard = t.value AND b.handler = q.value ->> 1 AND b.status NOT IN ('CANCELLED', 'COMPLETED')
               AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR b.waiting > 0))
       WHEN 'keeping' THEN EXISTS (
            SELECT 1 FROM holdfast_batch AS b INDEXED BY holdfast_batch_due WHERE b.shard = t.value AND b.due_at IS NOT NULL AND b.due_at <= {now})
       WHEN 'cleaning' THEN EXISTS (
            SELECT 1 FROM holdfast_item AS i INDEXED BY holdfast_item_sweep WHERE i.shard = t.value AND i.sweep_at IS NOT NULL AND i.sweep_at <= {now})
       WHEN 'paused batch' THEN EXISTS (
            SELECT 1 FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
             WHERE b.shard = t.value AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED')
       WHEN 'unfinished reaction' THEN EXISTS (
            SELECT 1 FROM holdfast_reaction AS r INDEXED BY holdfast_reaction_unfinished WHERE r.shard = t.value AND r.state <> 'live')
       WHEN 'dropped events' THEN EXISTS (
            SELECT 1 FROM holdfast_stream AS s INDEXED BY holdfast_stream_unpruned WHERE s.shard = t.value AND s.pruned < s.first)
       WHEN 'old run' THEN EXISTS (
            SELECT 1 FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = t.value AND r.prune_at IS NOT NULL AND r.prune_at <= {now})
       WHEN 'scope' THEN t.key = 0 AND q.value ->> 1 ->> 4 <> coalesce(( -- [shard, workspace, kind, id, version], -1 for none; the shard is its own, known or not
            SELECT s.version FROM holdfast_scope AS s
             WHERE s.shard = q.value ->> 1 ->> 0 AND s.workspace = q.value ->> 1 ->> 1 AND s.kind = q.value ->> 1 ->> 2 AND s.id = q.value ->> 1 ->> 3
               AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})), -1)
       WHEN 'cancelled batch' THEN t.key = 0 AND EXISTS ( -- [shard, workspace, id]
            SELECT 1 FROM holdfast_batch AS b
             WHERE b.shard = q.value ->> 1 ->> 0 AND b.workspace = q.value ->> 1 ->> 1 AND b.id = q.value ->> 1 ->> 2 AND b.cancel_requested)
       WHEN 'cancelled run' THEN t.key = 0 AND EXISTS (
            SELECT 1 FROM holdfast_run AS r
             WHERE r.shard = q.value ->> 1 ->> 0 AND r.workspace = q.value ->> 1 ->> 1 AND r.id = q.value ->> 1 ->> 2 AND r.cancel_requested)
       WHEN 'old scope' THEN EXISTS (
            SELECT 1 FROM holdfast_scope AS s INDEXED BY holdfast_scope_expires WHERE s.shard = t.value AND s.expires_at IS NOT NULL AND s.expires_at <= {now})
       WHEN 'old request' THEN EXISTS (
            SELECT 1 FROM holdfast_request AS r INDEXED BY holdfast_request_expires WHERE r.shard = t.value AND r.expires_at <= {now})
       WHEN 'old token' THEN EXISTS (
            SELECT 1 FROM holdfast_token AS k INDEXED BY holdfast_token_expires WHERE k.shard = t.value AND k.expires_at < {now})
       WHEN 'old attempt' THEN EXISTS (
            SELECT 1 FROM holdfast_attempt AS a INDEXED BY holdfast_attempt_at WHERE a.shard = t.value AND a.at < {now} - (q.value ->> 1))
       ELSE true
       END THEN 0 END
           END AS wait
          FROM json_each(?4) AS q CROSS JOIN json_each(?3) AS t
         WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL) AS w
 WHERE w.wait IS NOT NULL
 GROUP BY w.need
