-- Replaces the state of scopes, each if it is at the expected version. An expired scope
-- counts as missing.
-- :want (NULL any, -1 none)
WITH {members}, {include store/time}, cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, CASE WHEN s.expires_at IS NULL OR s.expires_at > {now} THEN s.state END AS state
      {include scopes/lock}
), moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, state = m.state::jsonb, updated_at = t.now, expires_at = t.now + m.ttl::float8 * interval '1 ms'
      FROM t, m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope
       AND (m.want IS NULL
            OR (m.want = -1 AND cur.state IS NULL)
            OR (m.want = cur.version AND cur.state IS NOT NULL))
    RETURNING s.shard, s.workspace, s.kind, s.id, s.version, s.state, s.updated_at
), made AS (
    INSERT INTO {schema}.scope (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at, born)
    SELECT m.shard, m.workspace, m.kind, m.scope, l.version, m.state::jsonb, t.now, t.now, t.now + m.ttl::float8 * interval '1 ms', l.version
      FROM t, m CROSS JOIN LATERAL (
           {include scopes/floor m}) AS l
     WHERE (m.want IS NULL OR m.want = -1)
       AND CASE WHEN EXISTS (SELECT 1 FROM cur WHERE cur.shard = m.shard AND cur.workspace = m.workspace
                                                 AND cur.kind = m.kind AND cur.id = m.scope)
                  OR (SELECT true FROM {schema}.scope s WHERE s.shard = m.shard AND s.workspace = m.workspace
                                                              AND s.kind = m.kind AND s.id = m.scope LIMIT 1) IS NOT NULL
                THEN false
                ELSE {enter}(pg_catalog.hashtextextended('scope/' || m.shard::text || '/' || m.workspace || '/' || m.kind || '/' || m.scope, 0)){entered} END
     ORDER BY m.shard, m.workspace, m.kind, m.scope
    ON CONFLICT (shard, workspace, kind, id) DO NOTHING
    RETURNING shard, workspace, kind, id, version, state, updated_at
), won AS (
    SELECT m.member, m.shard, m.workspace, m.command, m.kind, m.scope, m.note, m.correlation, m.causation, m.actor,
           w.version, w.state, w.updated_at
      FROM m JOIN (SELECT * FROM moved UNION ALL SELECT * FROM made) w
        ON w.shard = m.shard AND w.workspace = m.workspace AND w.kind = m.kind AND w.id = m.scope
), {include history/write}
    SELECT won.shard, won.command, 0, won.workspace, '$scope/' || won.kind || '/' || won.scope, won.version, 'put', won.note::json,
           won.correlation, won.causation, won.actor, won.updated_at
      FROM won
    {due_notices}
SELECT m.member,
       CASE WHEN won.member IS NOT NULL THEN 1
            WHEN cur.id IS NOT NULL THEN 0
            WHEN (SELECT true FROM {schema}.scope s WHERE s.shard = m.shard AND s.workspace = m.workspace
                                                          AND s.kind = m.kind AND s.id = m.scope LIMIT 1) IS NOT NULL THEN 2
            WHEN m.want >= 0 THEN 0
            ELSE 2 END,
       coalesce(won.version, CASE WHEN cur.state IS NOT NULL THEN cur.version END, -1),
       coalesce(won.state, cur.state, 'null')::text
  FROM m LEFT JOIN won ON won.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
