-- Ends a hold for good: ?7 says how. 'blocked' leaves the stream blocked for the
-- reaction, 'skipped' goes on behind the version that failed, 'died' blocks it
-- because nobody came back. A stream whose reset is requested is left alone: the end of the lease resets it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 reaction, ?5 stream, ?6 epoch, ?7 how,
-- ?8 done, ?9 the version that failed, ?10 error, ?11 failures, ?12 revision,
-- ?13 marks
-- do
UPDATE holdfast_follow AS f
   SET watermark = max(f.watermark, ?8, CASE WHEN ?7 = 'skipped' THEN ?9 ELSE -1 END),
       failures = ?11, blocked = ?7 <> 'skipped',
       deaths = CASE WHEN ?7 = 'died' THEN f.deaths + 1 WHEN ?7 = 'skipped' OR ?8 > f.watermark THEN 0 ELSE f.deaths END,
       crash_group = CASE WHEN ?7 = 'skipped' OR ?8 > f.watermark THEN 0 ELSE f.crash_group END,
       failing = CASE WHEN ?7 <> 'skipped' THEN ?9 END,
       error = CASE WHEN ?7 <> 'skipped' THEN ?10 END, holder = NULL, until = NULL, quiet = 0, lost = 0,
       epoch = f.epoch + (?7 = 'died'), version = 1 + max(f.version, coalesce((SELECT max(h.version) FROM holdfast_history AS h
                   WHERE h.shard = ?1 AND h.workspace = ?2 AND h.stream = '$reaction/' || ?4 || '/' || ?5), -1)),
       due_at = {now}, rank = {now} - (f.due_at - f.rank), updated_at = {now}
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?4 AND f.stream = ?5
   AND f.reset_requested = 0 AND f.epoch = ?6 AND CASE WHEN ?7 = 'died' THEN f.until <= {now} ELSE f.until > {now} END
RETURNING 0, 0
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
SELECT ?1, ?3, 0, ?2, '$reaction/' || ?4 || '/' || ?5, f.version, CASE WHEN ?7 = 'skipped' THEN 'skipped' ELSE 'blocked' END,
       json_object('version', ?9, 'error', ?10, 'deaths', f.deaths), f.updated_at
  FROM holdfast_follow AS f
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?4 AND f.stream = ?5
-- else
SELECT coalesce(f.epoch = ?6 AND f.holder IS NULL
                AND CASE WHEN ?7 = 'skipped' THEN f.blocked = 0 AND f.watermark >= ?9 ELSE f.blocked = 1 AND f.failing = ?9 END, 0),
       coalesce(f.epoch = ?6 AND f.reset_requested, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_follow AS f
    ON f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?4 AND f.stream = ?5
