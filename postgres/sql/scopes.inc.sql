-- Adds to whole numbers in the state of scopes, and makes what is missing. A
-- field that is no whole number of 64 bits, or would not be one afterwards, is
-- left as it is. Sums are taken as numeric, so that nothing overflows into an
-- error before it is looked at.
-- Several members may share a scope: they are added up in their order, and each
-- has its own version, value and event. Where one of several would be refused,
-- none of them is served here (outcome 2): the order of refusals is told apart
-- one by one.
-- $4 kind, $5 scope, $6 field, $7 by, $8 correlation, $9 causation, $10 actor
-- $11 revision, $12 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                         $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[])
             WITH ORDINALITY AS m(shard, workspace, command, kind, scope, field, by,
                                  correlation, causation, actor, revision, marks, member)
     WHERE {known}
), t AS MATERIALIZED (
    SELECT {now} AS now
), k AS (
    SELECT DISTINCT m.shard, m.workspace, m.kind, m.scope FROM m
), cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, s.state
      FROM k JOIN {schema}.scope s
        ON s.shard = k.shard AND s.workspace = k.workspace AND s.kind = k.kind AND s.id = k.scope
     ORDER BY s.shard, s.workspace, s.kind, s.id
       FOR UPDATE OF s{skip}
), gone AS MATERIALIZED (
    SELECT k.shard, k.workspace, k.kind, k.scope
      FROM k
     WHERE CASE WHEN EXISTS (SELECT 1 FROM cur WHERE cur.shard = k.shard AND cur.workspace = k.workspace
                                                 AND cur.kind = k.kind AND cur.id = k.scope)
                  OR EXISTS (SELECT 1 FROM {schema}.scope s WHERE s.shard = k.shard AND s.workspace = k.workspace
                                                              AND s.kind = k.kind AND s.id = k.scope)
                THEN false
                ELSE {enter}(hashtextextended('scope/' || k.shard || '/' || k.workspace || '/' || k.kind || '/' || k.scope, 0)){entered} END
), base AS (
    SELECT cur.shard, cur.workspace, cur.kind, cur.id AS scope, cur.version, coalesce(cur.state, '{}') AS state FROM cur
    UNION ALL
    SELECT gone.shard, gone.workspace, gone.kind, gone.scope, -1, '{}' FROM gone
), old AS (
    SELECT m.member, m.shard, m.workspace, m.kind, m.scope, m.field, m.by, base.version, base.state,
           CASE WHEN NOT base.state ? m.field THEN 0
                WHEN jsonb_typeof(base.state -> m.field) = 'number' AND base.state ->> m.field ~ '^-?[0-9]+$'
                THEN (base.state ->> m.field)::numeric END AS value
      FROM m JOIN base ON base.shard = m.shard AND base.workspace = m.workspace AND base.kind = m.kind AND base.scope = m.scope
), sums AS (
    SELECT old.member, old.shard, old.workspace, old.kind, old.scope, old.field, old.state,
           old.version + row_number() OVER (PARTITION BY old.shard, old.workspace, old.kind, old.scope ORDER BY old.member) AS version,
           old.value AS before,
           old.value + sum(old.by) OVER (PARTITION BY old.shard, old.workspace, old.kind, old.scope, old.field ORDER BY old.member) AS value
      FROM old
), fits AS (
    SELECT sums.shard, sums.workspace, sums.kind, sums.scope, count(*) AS members,
           bool_and(sums.before IS NOT NULL
                    AND sums.before BETWEEN -9223372036854775808 AND 9223372036854775807
                    AND sums.value BETWEEN -9223372036854775808 AND 9223372036854775807) AS yes
      FROM sums
     GROUP BY sums.shard, sums.workspace, sums.kind, sums.scope
), new AS (
    SELECT sums.member, sums.shard, sums.workspace, sums.kind, sums.scope, sums.version, sums.value::bigint AS value,
           sums.state || jsonb_object_agg(sums.field, sums.value::bigint)
               OVER (PARTITION BY sums.shard, sums.workspace, sums.kind, sums.scope ORDER BY sums.member) AS state
      FROM sums JOIN fits ON fits.shard = sums.shard AND fits.workspace = sums.workspace
                         AND fits.kind = sums.kind AND fits.scope = sums.scope AND fits.yes
), last AS (
    SELECT DISTINCT ON (new.shard, new.workspace, new.kind, new.scope)
           new.shard, new.workspace, new.kind, new.scope, new.version, new.state
      FROM new
     ORDER BY new.shard, new.workspace, new.kind, new.scope, new.member DESC
), moved AS (
    UPDATE {schema}.scope s
       SET version = last.version, state = last.state, updated_at = t.now
      FROM t, last JOIN cur ON cur.shard = last.shard AND cur.workspace = last.workspace AND cur.kind = last.kind AND cur.id = last.scope
     WHERE s.shard = last.shard AND s.workspace = last.workspace AND s.kind = last.kind AND s.id = last.scope
    RETURNING s.shard, s.workspace, s.kind, s.id
), made AS (
    INSERT INTO {schema}.scope (shard, workspace, kind, id, version, state, created_at, updated_at)
    SELECT last.shard, last.workspace, last.kind, last.scope, last.version, last.state, t.now, t.now
      FROM t, last JOIN gone ON gone.shard = last.shard AND gone.workspace = last.workspace
                            AND gone.kind = last.kind AND gone.scope = last.scope
     ORDER BY last.shard, last.workspace, last.kind, last.scope
    ON CONFLICT (shard, workspace, kind, id) DO NOTHING
    RETURNING shard, workspace, kind, id
), won AS (
    SELECT new.member, new.version, new.value, new.state
      FROM new JOIN (SELECT * FROM moved UNION ALL SELECT * FROM made) w
        ON w.shard = new.shard AND w.workspace = new.workspace AND w.kind = new.kind AND w.id = new.scope
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$scope/' || m.kind || '/' || m.scope, won.version, 'inc',
           json_build_object('field', m.field, 'by', m.by, 'value', won.value),
           m.correlation, m.causation, m.actor, t.now
      FROM t, m JOIN won ON won.member = m.member
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member,
       CASE WHEN won.member IS NOT NULL THEN 1 WHEN fits.members = 1 AND NOT fits.yes THEN 0 ELSE 2 END,
       coalesce(won.version, base.version, -1),
       coalesce(won.state, base.state, 'null')::text,
       coalesce(won.value, 0)
  FROM m
  LEFT JOIN won ON won.member = m.member
  LEFT JOIN fits ON fits.shard = m.shard AND fits.workspace = m.workspace AND fits.kind = m.kind AND fits.scope = m.scope
  LEFT JOIN base ON base.shard = m.shard AND base.workspace = m.workspace AND base.kind = m.kind AND base.scope = m.scope
