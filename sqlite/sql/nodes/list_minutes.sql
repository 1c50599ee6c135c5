-- Lists what the nodes have done by the minute, the oldest first: since :age ago, after a given minute and node.
SELECT c.minute, c.node, c.commands, c.refusals, c.requests, c.runs, c.steps, c.items, c.reactions, coalesce(c.latency, -1), coalesce(c.lag, -1)
  FROM holdfast_node_minute AS c
 WHERE c.minute >= {now} - :age AND (c.minute, c.node) > (:minute, :node) AND :shard IS NOT NULL AND :workspace IS NOT NULL
 ORDER BY c.minute, c.node
 LIMIT :limit
