-- Repairs where a reaction stands on a stream: ?6 says how. 'unblock' lets it go
-- on where it stopped, 'skip' behind the version that failed, 'reset' sends it
-- back to the beginning. Somebody who holds it is left alone, and so is a stream
-- with nothing to repair. The epoch ends: whoever had it can write
-- nothing more.
-- ?1 shard, ?2 workspace, ?3 command, ?4 reaction, ?5 stream, ?6 how, ?7 revision,
-- ?8 marks
-- do
UPDATE holdfast_follow AS f
   SET watermark = CASE ?6 WHEN 'reset' THEN -1 WHEN 'skip' THEN max(f.watermark, f.failing) ELSE f.watermark END,
       generation = f.generation + (?6 = 'reset'),
       failures = 0, deaths = 0, lost = 0, blocked = 0, failing = NULL, error = NULL,
       epoch = f.epoch + 1, holder = NULL, until = NULL,
       version = 1 + max(f.version, coalesce((SELECT max(h.version) FROM holdfast_history AS h
                   WHERE h.shard = ?1 AND h.workspace = ?2 AND h.stream = '$reaction/' || ?4 || '/' || ?5), -1)), due_at = {now}, rank = {now} - (f.due_at - f.rank), updated_at = {now}
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?4 AND f.stream = ?5
   AND (f.holder IS NULL OR f.until <= {now})
   AND CASE ?6 WHEN 'unblock' THEN f.blocked WHEN 'skip' THEN f.failing IS NOT NULL ELSE 1 END
RETURNING watermark, '', due_at
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
SELECT ?1, ?3, 0, ?2, '$reaction/' || ?4 || '/' || ?5, f.version,
       CASE ?6 WHEN 'unblock' THEN 'unblocked' WHEN 'skip' THEN 'skipped' ELSE 'reset' END,
       json_object('watermark', f.watermark, 'generation', f.generation), f.updated_at
  FROM holdfast_follow AS f
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?4 AND f.stream = ?5
-- else
SELECT coalesce(f.watermark, -1), coalesce(f.holder, ''), coalesce(f.due_at, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_follow AS f
    ON f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?4 AND f.stream = ?5
