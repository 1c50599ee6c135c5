-- Voids a command, so that it can never be applied, or returns the event that it wrote.
-- The table is {1}.

-- do
INSERT INTO {1} (shard, id, n, workspace, stream, version, name, data, at)
SELECT :shard, :id, 0, :workspace, '$void/' || hex(:id), 0, 'void', '{}', {now} WHERE true
ON CONFLICT DO NOTHING
RETURNING version, true, name, data, at
-- else
SELECT e.version, substr(e.stream, 1, 6) = '$void/', e.name, e.data, e.at
  FROM {1} AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.id = :id
 ORDER BY e.n DESC
 LIMIT 1
