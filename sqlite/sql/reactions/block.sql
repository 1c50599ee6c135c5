-- Ends a lease without a retry; :how selects the outcome.
-- do
UPDATE holdfast_follow AS f
   SET watermark = max(f.watermark, :done, CASE WHEN :how = 'skipped' THEN :failing ELSE -1 END),
       failures = :failures, blocked = :how <> 'skipped',
       deaths = CASE WHEN :how = 'died' THEN f.deaths + 1 WHEN :how = 'skipped' OR :done > f.watermark THEN 0 ELSE f.deaths END,
       crash_group = CASE WHEN :how = 'skipped' OR :done > f.watermark THEN 0 ELSE f.crash_group END,
       failing = CASE WHEN :how <> 'skipped' THEN :failing END,
       error = CASE WHEN :how <> 'skipped' THEN :error END, holder = NULL, until = NULL, quiet = 0, lost = 0,
       epoch = f.epoch + (:how = 'died'), version = 1 + max(f.version, coalesce((SELECT max(h.version) FROM holdfast_history AS h
                   WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = '$reaction/' || :reaction || '/' || :stream), -1)),
       due_at = {now}, rank = {now} - (f.due_at - f.rank), updated_at = {now}
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
   AND f.reset_requested = 0 AND f.epoch = :epoch AND CASE WHEN :how = 'died' THEN f.until <= {now} ELSE f.until > {now} END
RETURNING 0, 0
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
SELECT :shard, :command, 0, :workspace, '$reaction/' || :reaction || '/' || :stream, f.version, CASE WHEN :how = 'skipped' THEN 'skipped' ELSE 'blocked' END,
       json_object('version', :failing, 'error', :error, 'deaths', f.deaths), f.updated_at
  FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
-- else
SELECT coalesce(f.epoch = :epoch AND f.holder IS NULL
                AND CASE WHEN :how = 'skipped' THEN f.blocked = 0 AND f.watermark >= :failing ELSE f.blocked = 1 AND f.failing = :failing END, 0),
       coalesce(f.epoch = :epoch AND f.reset_requested, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_follow AS f
    ON f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
