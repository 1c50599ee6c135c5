-- Edits scopes, and creates missing ones. Several members may share a scope: their edits are
-- applied in order, each on the state that the previous one left, and each edit that changes
-- something has its own version and event.
-- The outcome of a member: 0 refused, 1 changed, 2 changed nothing, 3 not at the expected version.
-- The event of an edit that begins a new state says so, except at version 0 and after a deletion: no event precedes it that ends the state
-- of an expired scope, and versions are missing before a scope that starts above the floor of its kind.
-- :value JSON; :want (NULL any, -1 none, -2 some)
WITH {members}, {include store/time}, k AS (
    SELECT DISTINCT m.shard, m.workspace, m.kind, m.scope FROM m
), cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, s.state, s.expires_at
      FROM k JOIN {schema}.scope s
        ON s.shard = ANY (ARRAY[k.shard]) AND s.workspace = k.workspace AND s.kind = k.kind AND s.id = k.scope
     ORDER BY k.shard, s.workspace, s.kind, s.id
       FOR UPDATE OF s{skip}
), gone AS MATERIALIZED (
    SELECT k.shard, k.workspace, k.kind, k.scope
      FROM k
     WHERE CASE WHEN EXISTS (SELECT 1 FROM cur WHERE cur.shard = k.shard AND cur.workspace = k.workspace
                                                 AND cur.kind = k.kind AND cur.id = k.scope)
                  OR (SELECT true FROM {schema}.scope s WHERE s.shard = k.shard AND s.workspace = k.workspace
                                                              AND s.kind = k.kind AND s.id = k.scope LIMIT 1) IS NOT NULL
                THEN false
                ELSE {enter}(pg_catalog.hashtextextended('scope/' || k.shard::text || '/' || k.workspace || '/' || k.kind || '/' || k.scope, 0)){entered} END
), base AS (
    SELECT c.shard, c.workspace, c.kind, c.id AS scope, c.version, c.alive, c.state IS NOT NULL AND NOT c.alive AS created,
           CASE WHEN c.alive THEN c.state ELSE '{}' END AS state
      FROM (SELECT cur.*, cur.state IS NOT NULL AND (cur.expires_at IS NULL OR cur.expires_at > t.now) AS alive FROM cur, t) AS c
    UNION ALL
    SELECT gone.shard, gone.workspace, gone.kind, gone.scope, l.version - 1, false, l.version > 0, '{}'::jsonb
      FROM gone CROSS JOIN LATERAL (
           {include scopes/floor gone}) AS l
), queue AS (
    SELECT m.shard, m.workspace, m.kind, m.scope,
           pg_catalog.array_agg(m.member ORDER BY m.member) AS members, pg_catalog.array_agg(m.op ORDER BY m.member) AS ops,
           pg_catalog.array_agg(m.field ORDER BY m.member) AS fields, pg_catalog.array_agg(m.key ORDER BY m.member) AS keys,
           pg_catalog.array_agg(m.value::jsonb ORDER BY m.member) AS items, pg_catalog.array_agg(m.want ORDER BY m.member) AS wants
      FROM m
     GROUP BY m.shard, m.workspace, m.kind, m.scope
), turn AS MATERIALIZED (
    SELECT q.shard, q.workspace, q.kind, q.scope, e.made_member AS member, e.made_version AS version, e.made_alive AS alive,
           e.made_state AS state, e.made_verdict AS verdict, base.created AND e.made_version = base.version + 1 AS created
      FROM queue q
      JOIN base ON base.shard = q.shard AND base.workspace = q.workspace AND base.kind = q.kind AND base.scope = q.scope
     CROSS JOIN LATERAL {schema}.scope_edits(base.version, base.alive, base.state, q.members, q.ops, q.fields, q.keys, q.items, q.wants) AS e
), last AS (
    SELECT DISTINCT ON (turn.shard, turn.workspace, turn.kind, turn.scope)
           turn.shard, turn.workspace, turn.kind, turn.scope, turn.version, turn.state,
           t.now + m.ttl::float8 * interval '1 ms' AS expires_at,
           pg_catalog.min(turn.version) OVER (PARTITION BY turn.shard, turn.workspace, turn.kind, turn.scope) AS first
      FROM t, turn JOIN m ON m.member = turn.member
     WHERE turn.verdict = 1
     ORDER BY turn.shard, turn.workspace, turn.kind, turn.scope, turn.member DESC
), moved AS (
    UPDATE {schema}.scope s
       SET version = last.version, state = last.state, updated_at = t.now, expires_at = last.expires_at
      FROM t, last JOIN cur ON cur.shard = last.shard AND cur.workspace = last.workspace AND cur.kind = last.kind AND cur.id = last.scope
     WHERE s.shard = ANY (ARRAY[last.shard]) AND s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = last.workspace AND s.kind = last.kind AND s.id = last.scope
    RETURNING s.shard, s.workspace, s.kind, s.id
), made AS (
    INSERT INTO {schema}.scope (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at, born)
    SELECT last.shard, last.workspace, last.kind, last.scope, last.version, last.state, t.now, t.now, last.expires_at, last.first
      FROM t, last JOIN gone ON gone.shard = last.shard AND gone.workspace = last.workspace
                            AND gone.kind = last.kind AND gone.scope = last.scope
     ORDER BY last.shard, last.workspace, last.kind, last.scope
    ON CONFLICT (shard, workspace, kind, id) DO NOTHING
    RETURNING shard, workspace, kind, id
), stored AS (
    SELECT * FROM moved UNION ALL SELECT * FROM made
), won AS (
    SELECT turn.member, turn.version, turn.state, turn.created
      FROM turn JOIN stored w
        ON w.shard = turn.shard AND w.workspace = turn.workspace AND w.kind = turn.kind AND w.id = turn.scope
     WHERE turn.verdict = 1
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$scope/' || m.kind || '/' || m.scope, won.version, m.op,
           {include scopes/edit_data m.op; m.field; m.key; m.value; won.state -> m.field; CASE WHEN won.created THEN '"created":true,' ELSE '' END},
           m.correlation, m.causation, m.actor, t.now
      FROM t, m JOIN won ON won.member = m.member
    {due_notices}
SELECT m.member,
       CASE WHEN won.member IS NOT NULL THEN 1
            WHEN turn.member IS NULL OR turn.verdict = 1 THEN 2
            WHEN EXISTS (SELECT 1 FROM last WHERE last.shard = m.shard AND last.workspace = m.workspace AND last.kind = m.kind AND last.scope = m.scope)
             AND NOT EXISTS (SELECT 1 FROM stored w WHERE w.shard = m.shard AND w.workspace = m.workspace AND w.kind = m.kind AND w.id = m.scope) THEN 2
            ELSE 0 END,
       CASE WHEN turn.alive THEN turn.version ELSE -1 END,
       CASE WHEN turn.alive THEN turn.state ELSE 'null' END::text,
       coalesce(turn.verdict, 0)
  FROM m LEFT JOIN won ON won.member = m.member
  LEFT JOIN turn ON turn.member = m.member
