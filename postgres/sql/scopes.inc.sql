-- Adds to a whole number in the state of scopes, and makes what is missing. A
-- field that is no whole number of 64 bits, or would not be one afterwards, is
-- left as it is. Sums are taken as numeric, so that nothing overflows into an
-- error before it is looked at.
-- $4 kind, $5 scope, $6 field, $7 by, $8 correlation, $9 causation, $10 actor
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                         $8::text[], $9::text[], $10::text[])
             WITH ORDINALITY AS m(shard, workspace, command, kind, scope, field, by,
                                  correlation, causation, actor, member)
), t AS MATERIALIZED (
    SELECT {now} AS now
), cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, s.state
      FROM m JOIN {schema}.scope s
        ON s.shard = m.shard AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope
     ORDER BY s.shard, s.workspace, s.kind, s.id
       FOR UPDATE OF s
), old AS (
    SELECT m.member, m.by,
           CASE WHEN cur.state IS NULL OR NOT cur.state ? m.field THEN 0
                WHEN jsonb_typeof(cur.state -> m.field) = 'number' AND cur.state ->> m.field ~ '^-?[0-9]+$'
                THEN (cur.state ->> m.field)::numeric END AS value
      FROM m LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
), new AS (
    SELECT old.member, (old.value + old.by)::bigint AS value
      FROM old
     WHERE old.value BETWEEN -9223372036854775808 AND 9223372036854775807
       AND old.value + old.by BETWEEN -9223372036854775808 AND 9223372036854775807
), moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, updated_at = t.now,
           state = coalesce(cur.state, '{}') || jsonb_build_object(m.field, new.value)
      FROM t, m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
                JOIN new ON new.member = m.member
     WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope
    RETURNING s.shard, s.workspace, s.kind, s.id, s.version, s.state, s.updated_at
), made AS (
    INSERT INTO {schema}.scope (shard, workspace, kind, id, version, state, created_at, updated_at)
    SELECT m.shard, m.workspace, m.kind, m.scope, 0, jsonb_build_object(m.field, m.by), t.now, t.now
      FROM m, t
     WHERE NOT EXISTS (SELECT 1 FROM cur WHERE cur.shard = m.shard AND cur.workspace = m.workspace
                                           AND cur.kind = m.kind AND cur.id = m.scope)
     ORDER BY m.shard, m.workspace, m.kind, m.scope
    ON CONFLICT (shard, workspace, kind, id) DO NOTHING
    RETURNING shard, workspace, kind, id, version, state, updated_at
), won AS (
    SELECT m.member, m.shard, m.workspace, m.command, m.kind, m.scope, m.field, m.by,
           m.correlation, m.causation, m.actor, w.version, w.state, w.updated_at
      FROM m JOIN (SELECT * FROM moved UNION ALL SELECT * FROM made) w
        ON w.shard = m.shard AND w.workspace = m.workspace AND w.kind = m.kind AND w.id = m.scope
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT won.shard, won.command, 0, won.workspace, '$scope/' || won.kind || '/' || won.scope, won.version, 'inc',
           json_build_object('field', won.field, 'by', won.by, 'value', won.state -> won.field),
           won.correlation, won.causation, won.actor, won.updated_at
      FROM won
)
SELECT m.member,
       CASE WHEN won.member IS NOT NULL THEN 1 WHEN cur.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(won.version, cur.version, -1),
       coalesce(won.state, cur.state, 'null')::text,
       CASE WHEN won.member IS NOT NULL THEN (won.state ->> won.field)::bigint ELSE 0 END
  FROM m
  LEFT JOIN won ON won.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
