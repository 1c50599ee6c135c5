-- Says that a command never will be applied, or tells the event that it wrote.
-- ?1 shard, ?2 workspace, ?4 the command's id
-- do
INSERT INTO holdfast_event (shard, id, n, workspace, stream, version, name, data, at)
SELECT ?1, ?4, 0, ?2, '$void/' || hex(?4), 0, 'void', '{}', {now} WHERE true
ON CONFLICT DO NOTHING
RETURNING version, true, name, data, at
-- else
SELECT e.version, substr(e.stream, 1, 6) = '$void/', e.name, e.data, e.at
  FROM holdfast_event AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.id = ?4
 ORDER BY e.n DESC
 LIMIT 1
