-- Makes a webhook, with its first event. An id that is taken is refused.
-- ?1 shard, ?2 workspace, ?3 command, ?4 id, ?5 name, ?6 url, ?7 events, a JSON list, ?8 streams, ?9 secret, sealed, ?10 actor
-- do
INSERT INTO holdfast_webhook
    (shard, workspace, id, name, url, events, streams, secret, version, created_by, created_at)
SELECT ?1, ?2, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, {now}
 WHERE true
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING id, name, url, events, streams, version, created_by, created_at, coalesce(rotated_at, 0), coalesce(former_until, 0)
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$webhook/' || ?4, w.version, 'created',
       json_object('name', w.name, 'url', w.url, 'events', json(w.events), 'streams', w.streams),
       NULL, NULL, ?10, w.created_at
  FROM holdfast_webhook AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4
-- else
SELECT '', '', '', '[]', '', -1, '', 0, 0, 0
