-- Says that a transaction committed, under the id of the command.
-- ?1 shard, ?2 workspace, ?3 command
-- do
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
SELECT ?1, ?3, 0, ?2, '$mark/' || hex(?3), 0, 'committed', '{}', {now} WHERE true
RETURNING version
