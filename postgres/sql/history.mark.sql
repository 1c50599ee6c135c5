-- Says that a transaction committed, under the id of the command.
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[])
             WITH ORDINALITY AS m(shard, workspace, command, member)
), made AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, '$mark/' || m.command::text, 0, 'committed', '{}', {now}
      FROM m
    RETURNING version
)
SELECT m.member, 1, made.version FROM m, made
