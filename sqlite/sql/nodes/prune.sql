-- Deletes minutes older than :age, the oldest first, and nodes not seen for so long.
-- look
SELECT 1 FROM holdfast_node_minute AS c WHERE c.minute < {now} - :age AND :shard IS NOT NULL AND :workspace IS NOT NULL
UNION ALL
SELECT 1 FROM holdfast_node AS n WHERE n.seen_at < {now} - :age
 LIMIT 1
-- do
SELECT 1
-- also
DELETE FROM holdfast_node AS n WHERE n.seen_at < {now} - :age
-- also
DELETE FROM holdfast_node_minute AS c
 WHERE (c.minute, c.node) IN (SELECT o.minute, o.node FROM holdfast_node_minute AS o WHERE o.minute < {now} - :age ORDER BY o.minute, o.node LIMIT :limit)
