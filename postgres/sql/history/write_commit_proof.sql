-- Writes the commit proof of a transaction, under the id of the command.
WITH {members}, made AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, '$mark/' || m.command::text, 0, 'committed', '{}', {now}
      FROM m
    RETURNING version
)
SELECT m.member, 1, made.version FROM m, made
