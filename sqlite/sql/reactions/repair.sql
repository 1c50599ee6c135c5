-- Repairs the position of a reaction on a stream; :how selects the repair.
-- do
UPDATE holdfast_follow AS f
   SET watermark = CASE WHEN f.until > {now} THEN f.watermark WHEN :how = 'reset' THEN -1 WHEN :how = 'skip' THEN max(f.watermark, f.failing) ELSE f.watermark END,
       generation = f.generation + (:how = 'reset' AND coalesce(f.until <= {now}, 1)),
       failures = CASE WHEN f.until > {now} THEN f.failures ELSE 0 END, deaths = CASE WHEN f.until > {now} THEN f.deaths ELSE 0 END,
       crash_group = CASE WHEN f.until > {now} THEN f.crash_group ELSE 0 END, blocked = 0,
       quiet = f.quiet AND coalesce(f.until > {now}, 0), lost = CASE WHEN f.until > {now} THEN f.lost ELSE 0 END,
       failing = CASE WHEN f.until > {now} THEN f.failing END, error = CASE WHEN f.until > {now} THEN f.error END,
       epoch = f.epoch + coalesce(f.until <= {now}, 1), reset_requested = coalesce(f.until > {now}, 0),
       holder = CASE WHEN f.until > {now} THEN f.holder END, until = CASE WHEN f.until > {now} THEN f.until END,
       version = 1 + max(f.version, coalesce((SELECT max(h.version) FROM holdfast_history AS h
                   WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = '$reaction/' || :reaction || '/' || :stream), -1)),
       due_at = CASE WHEN f.until > {now} THEN f.due_at ELSE {now} END, rank = CASE WHEN f.until > {now} THEN f.rank ELSE {now} - (f.due_at - f.rank) END,
       updated_at = CASE WHEN f.until > {now} THEN f.updated_at ELSE {now} END
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
   AND :failing IN (-1, f.failing)
   AND CASE WHEN f.until > {now} THEN :how = 'reset' AND f.reset_requested = 0
            WHEN :how = 'unblock' THEN f.blocked WHEN :how = 'skip' THEN f.failing IS NOT NULL AND f.reset_requested = 0 ELSE 1 END
RETURNING watermark, coalesce(holder, ''), due_at, reset_requested
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$reaction/' || :reaction || '/' || :stream, f.version,
       CASE :how WHEN 'unblock' THEN 'unblocked' WHEN 'skip' THEN 'skipped' ELSE 'reset' END,
       CASE WHEN f.reset_requested THEN json_object('watermark', -1, 'generation', f.generation + 1, 'pending', json('true'))
            ELSE json_object('watermark', f.watermark, 'generation', f.generation) END, NULL, NULL, :actor, {now}
  FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
-- else
SELECT coalesce(f.watermark, -1), coalesce(f.holder, ''), coalesce(f.due_at, 0), coalesce(:how = 'reset' AND f.until > {now} AND f.reset_requested, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_follow AS f
    ON f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
