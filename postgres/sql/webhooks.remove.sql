-- Removes webhooks, with their secrets, each with its event. One that is removed stays
-- as it is.
-- $4 id, $5 actor
-- $6 revision, $7 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::text[])
             WITH ORDINALITY AS m(shard, workspace, command, id, actor, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT m.member, w.version
      FROM m JOIN {schema}.webhook w ON w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.id
     WHERE w.removed_at IS NULL
     ORDER BY m.shard, w.workspace, w.id
       FOR UPDATE OF w
), moved AS (
    UPDATE {schema}.webhook w
       SET removed_at = {now}, version = cur.version + 1, secret = '', former = NULL, former_until = NULL
      FROM m JOIN cur ON cur.member = m.member
     WHERE w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.id AND w.removed_at IS NULL
    RETURNING m.member, w.version, w.removed_at
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$webhook/' || m.id, moved.version, 'removed',
           '{}'::json, NULL, NULL, m.actor, moved.removed_at
      FROM m JOIN moved ON moved.member = m.member
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN moved ON moved.member = m.member
