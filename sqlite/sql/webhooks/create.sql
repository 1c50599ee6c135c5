-- Creates a webhook, with its first event. An existing id is refused.
-- do
INSERT INTO holdfast_webhook
    (shard, workspace, id, name, url, events, streams, headers, secret, version, created_by, created_at)
SELECT :shard, :workspace, :id, :name, :url, :events, :streams, :headers, :secret, 0, :actor, {now}
 WHERE true
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING id, name, url, events, streams, version, created_by, created_at, coalesce(rotated_at, 0), coalesce(former_until, 0),
          headers, CASE WHEN secret LIKE 'secret:%' THEN secret ELSE '' END
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$webhook/' || :id, w.version, 'created',
       json_object('name', w.name, 'url', w.url, 'events', json(w.events), 'streams', w.streams),
       NULL, NULL, :actor, w.created_at
  FROM holdfast_webhook AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id
-- else
SELECT '', '', '', '[]', '', -1, '', 0, 0, 0, '{}', ''
