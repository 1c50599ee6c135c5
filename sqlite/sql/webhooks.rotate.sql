-- Gives a webhook a new secret, with its event; the one before is kept as long as the
-- overlap lasts. One that is removed, or was changed meanwhile, stays as it is.
-- ?1 shard, ?2 workspace, ?3 command, ?4 id, ?5 version, ?6 secret, sealed, ?7 overlap in ms, ?8 actor
-- do
UPDATE holdfast_webhook AS w
   SET secret = ?6, version = w.version + 1, rotated_at = t.now,
       former = CASE WHEN ?7 > 0 THEN w.secret END,
       former_until = CASE WHEN ?7 > 0 THEN t.now + ?7 END
  FROM (SELECT {now} AS now) AS t
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4 AND w.version = ?5 AND w.removed_at IS NULL
RETURNING id, name, url, events, streams, version, created_by, created_at, coalesce(rotated_at, 0), coalesce(former_until, 0)
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$webhook/' || ?4, w.version, 'rotated', json_object('overlapMs', ?7), NULL, NULL, ?8, w.rotated_at
  FROM holdfast_webhook AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4
-- else
SELECT coalesce(w.id, ''), '', '', '[]', '', coalesce(w.version, -1), '', 0, 0, 0
  FROM (SELECT 1) LEFT JOIN holdfast_webhook AS w ON w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4 AND w.removed_at IS NULL
