-- Writes the commit proof of a transaction, under the id of the command.
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
SELECT :shard, :command, 0, :workspace, '$mark/' || hex(:command), 0, 'committed', '{}', {now} WHERE true
RETURNING version
