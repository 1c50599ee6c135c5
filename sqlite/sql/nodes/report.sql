-- Refreshes the row of a node, and adds what it has done since its last report to the current minute. Returns nothing if a
-- newer process reports under the same name.
-- do
INSERT INTO holdfast_node AS n (name, instance, version, started_at, seen_at, report)
SELECT :name, :instance, :version, t.now - :uptime, t.now, :report
  FROM (SELECT {now} AS now) AS t
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
ON CONFLICT (name) DO UPDATE
   SET instance = excluded.instance, version = excluded.version, seen_at = excluded.seen_at, report = excluded.report,
       started_at = CASE WHEN n.instance = excluded.instance THEN n.started_at ELSE excluded.started_at END
 WHERE n.instance <= excluded.instance
RETURNING 1
-- then
INSERT INTO holdfast_node_minute AS c (minute, node, commands, refusals, requests, runs, steps, items, reactions, latency, lag)
SELECT n.seen_at - n.seen_at % 60000, n.name, :commands, :refusals, :requests, :runs, :steps, :items, :reactions, :latency, :lag
  FROM holdfast_node AS n
 WHERE n.name = :name
ON CONFLICT (minute, node) DO UPDATE
   SET commands = c.commands + excluded.commands, refusals = c.refusals + excluded.refusals, requests = c.requests + excluded.requests,
       runs = c.runs + excluded.runs, steps = c.steps + excluded.steps, items = c.items + excluded.items, reactions = c.reactions + excluded.reactions,
       latency = coalesce(max(c.latency, excluded.latency), c.latency, excluded.latency), lag = coalesce(max(c.lag, excluded.lag), c.lag, excluded.lag)
