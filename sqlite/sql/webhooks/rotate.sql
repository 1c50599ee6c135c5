-- Stores a new secret of a webhook, with its event; the previous secret stays valid for the
-- overlap. A webhook that was removed or changed meanwhile is not changed.
-- do
UPDATE holdfast_webhook AS w
   SET secret = :secret, version = w.version + 1, rotated_at = t.now,
       former = CASE WHEN :overlap > 0 THEN w.secret END,
       former_until = CASE WHEN :overlap > 0 THEN t.now + :overlap END
  FROM (SELECT {now} AS now) AS t
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id AND w.version = :version AND w.removed_at IS NULL
RETURNING id, name, url, events, streams, version, created_by, created_at, coalesce(rotated_at, 0), coalesce(former_until, 0),
          headers, CASE WHEN secret LIKE 'secret:%' THEN secret ELSE '' END
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$webhook/' || :id, w.version, 'rotated', json_object('overlapMs', :overlap), NULL, NULL, :actor, w.rotated_at
  FROM holdfast_webhook AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id
-- else
SELECT coalesce(w.id, ''), '', '', '[]', '', coalesce(w.version, -1), '', 0, 0, 0, '{}', ''
  FROM (SELECT 1) LEFT JOIN holdfast_webhook AS w ON w.shard = :shard AND w.workspace = :workspace AND w.id = :id AND w.removed_at IS NULL
