-- Deletes the row of a node that stops, unless a newer process reports under the same name.
DELETE FROM holdfast_node AS n
 WHERE n.name = :name AND n.instance = :instance AND :shard IS NOT NULL AND :workspace IS NOT NULL
RETURNING 1
