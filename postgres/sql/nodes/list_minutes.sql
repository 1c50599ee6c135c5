-- Lists what the nodes have done by the minute, the oldest first: since :age ago, after a given minute and node.
-- :minute in ms since 1970; :node both of the last one read
SELECT c.minute, c.node, c.commands, c.refusals, c.requests, c.runs, c.steps, c.items, c.reactions, coalesce(c.latency, -1), coalesce(c.lag, -1)
  FROM {schema}.node_minute c
 WHERE c.minute >= (SELECT {now} - :age::float8 * interval '1 ms')
   AND (c.minute, c.node) > (pg_catalog.to_timestamp(:minute::float8 / 1000::float8), :node)
   AND :shard IS NOT NULL AND :workspace IS NOT NULL
 ORDER BY c.minute, c.node
 LIMIT :limit
