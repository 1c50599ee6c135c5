-- Creates webhooks, each with its first event. An existing id is refused.
-- :events a JSON list
WITH {members}, {include store/time}, made AS (
    INSERT INTO {schema}.webhook
        (shard, workspace, id, name, url, events, streams, headers, secret, version, created_by, created_at)
    SELECT m.shard, m.workspace, m.id, m.name, m.url, m.events::json, m.streams, m.headers, m.secret, 0, m.actor, t.now
      FROM m, t
     ORDER BY m.shard, m.workspace, m.id
    ON CONFLICT (shard, workspace, id) DO NOTHING
    RETURNING shard, workspace, id, name, url, events, streams, headers, secret, version, created_by, created_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$webhook/' || m.id, made.version, 'created',
           pg_catalog.json_build_object('name', made.name, 'url', made.url, 'events', made.events, 'streams', made.streams),
           NULL, NULL, m.actor, made.created_at
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.id
    {due_notices}
SELECT m.member, CASE WHEN made.id IS NULL THEN 0 ELSE 1 END,
       coalesce(made.id, ''), coalesce(made.name, ''), coalesce(made.url, ''), coalesce(made.events::text, '[]'), coalesce(made.streams, ''),
       coalesce(made.version, -1), coalesce(made.created_by, ''), coalesce(made.created_at, 'epoch'), 'epoch'::timestamptz, 'epoch'::timestamptz,
       coalesce(made.headers, '{}'), CASE WHEN made.secret LIKE 'secret:%' THEN made.secret ELSE '' END
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.id
