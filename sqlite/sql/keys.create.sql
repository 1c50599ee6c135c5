-- Makes an API key, with its first event. An id that is taken is refused.
-- ?1 shard, ?2 workspace, ?3 command, ?4 id, ?5 name, ?6 role, ?7 requesters, a JSON list, ?8 hash, ?9 rate,
-- ?10 lifetime in ms (NULL without end), ?11 the key that it succeeds (NULL none), ?12 actor, ?13 handlers, a JSON list
-- do
INSERT INTO holdfast_api_key
    (id, workspace, name, role, requesters, handlers, hash, rate, version, created_by, created_at, expires_at, origin)
SELECT ?4, ?2, ?5, ?6, ?7, ?13, ?8, ?9, 0, ?12, t.now, t.now + ?10,
       (SELECT coalesce(p.origin, p.id) FROM holdfast_api_key AS p WHERE p.workspace = ?2 AND p.id = ?11)
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id, name, role, requesters, handlers, rate, coalesce(successor, ''), created_by, created_at, coalesce(expires_at, 0), coalesce(revoked_at, 0)
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$key/' || ?4, k.version, 'created',
       json_object('name', k.name, 'role', k.role, 'requesters', json(k.requesters), 'handlers', json(k.handlers),
                   'expiresAt', strftime('%Y-%m-%dT%H:%M:%fZ', k.expires_at / 1000.0, 'unixepoch'), 'predecessor', ?11),
       NULL, NULL, ?12, k.created_at
  FROM holdfast_api_key AS k
 WHERE k.workspace = ?2 AND k.id = ?4
-- else
SELECT '', '', '', '[]', '[]', 0, '', '', 0, 0, 0
