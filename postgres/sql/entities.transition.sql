-- Moves entities from one of the named statuses to another, each if it is there
-- and, where a version is named, at that version. Rows are locked first, in key
-- order, so that a loser is told the true status.
-- $4 lifecycle, $5 entity, $6 from (for the scalar form only), $7 froms as a
-- JSON list, $8 to, $9 want, $10 data, $11 event, $12 note, $13 correlation,
-- $14 causation, $15 actor
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                         $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, one, froms, target,
                                  want, data, event, note, correlation, causation, actor, member)
), t AS MATERIALIZED (
    SELECT {now} AS now
), cur AS (
    SELECT e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at, e.updated_at
      FROM m JOIN {schema}.entity e
        ON e.shard = m.shard AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY e.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), moved AS (
    UPDATE {schema}.entity e
       SET status = m.target, version = e.version + 1, data = coalesce(m.data::jsonb, e.data), updated_at = t.now
      FROM t, m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace
                        AND cur.lifecycle = m.lifecycle AND cur.id = m.entity
     WHERE e.shard = m.shard AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
       AND m.froms::jsonb ? cur.status
       AND (m.want IS NULL OR m.want = cur.version)
    RETURNING m.member, e.status, e.version, e.data, e.created_at, e.updated_at, cur.status AS was
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$entity/' || m.lifecycle || '/' || m.entity, moved.version, m.event,
           json_build_object('from', moved.was, 'to', moved.status, 'note', m.note::json),
           m.correlation, m.causation, m.actor, moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
)
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1
            WHEN cur.id IS NULL AND EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = m.shard AND e.workspace = m.workspace
                                                                             AND e.lifecycle = m.lifecycle AND e.id = m.entity) THEN 2
            ELSE 0 END,
       coalesce(moved.status, cur.status, ''), coalesce(moved.version, cur.version, -1),
       coalesce(moved.data, cur.data, 'null')::text,
       coalesce(moved.created_at, cur.created_at, 'epoch'), coalesce(moved.updated_at, cur.updated_at, 'epoch')
  FROM m
  LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace
               AND cur.lifecycle = m.lifecycle AND cur.id = m.entity
