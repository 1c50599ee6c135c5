-- Refreshes the row of a node, and adds what it has done since its last report to the current minute. Returns nothing if a
-- newer process reports under the same name.
-- The oldest snapshot is that of another connection to the same database. A role without pg_read_all_stats sees those of its
-- own role only.
-- :uptime in ms; :report a JSON object; the counts are those since the last report; :latency and :lag in ms, NULL if there are none
WITH t AS MATERIALIZED (SELECT {now} AS now), oldest AS MATERIALIZED (
    SELECT a.xact_start AS since, 'pid ' || a.pid::text || ' (' || coalesce(nullif(a.application_name, ''), a.usename::text, '') || ', ' || coalesce(a.state, '') || ')' AS holder
      FROM pg_catalog.pg_stat_activity a
     WHERE a.datname = pg_catalog.current_database() AND a.backend_xmin IS NOT NULL AND a.xact_start IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
     ORDER BY a.xact_start
     LIMIT 1
), seen AS (
    INSERT INTO {schema}.node AS n (name, instance, version, started_at, seen_at, report, snapshot_at, snapshot_by)
    SELECT :name, :instance, :version, t.now - :uptime::float8 * interval '1 ms', t.now, :report::json, o.since, o.holder
      FROM t LEFT JOIN oldest o ON true
     WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
    ON CONFLICT (name) DO UPDATE
       SET instance = excluded.instance, version = excluded.version, seen_at = excluded.seen_at, report = excluded.report,
           started_at = CASE WHEN n.instance = excluded.instance THEN n.started_at ELSE excluded.started_at END,
           snapshot_at = excluded.snapshot_at, snapshot_by = excluded.snapshot_by
     WHERE n.instance <= excluded.instance
    RETURNING n.name, n.seen_at
), counted AS (
    INSERT INTO {schema}.node_minute AS c (minute, node, commands, refusals, requests, runs, steps, items, reactions, latency, lag)
    SELECT pg_catalog.date_trunc('minute', s.seen_at), s.name, :commands, :refusals, :requests, :runs, :steps, :items, :reactions, :latency, :lag
      FROM seen s
    ON CONFLICT (minute, node) DO UPDATE
       SET commands = c.commands + excluded.commands, refusals = c.refusals + excluded.refusals, requests = c.requests + excluded.requests,
           runs = c.runs + excluded.runs, steps = c.steps + excluded.steps, items = c.items + excluded.items, reactions = c.reactions + excluded.reactions,
           latency = greatest(c.latency, excluded.latency), lag = greatest(c.lag, excluded.lag)
    RETURNING c.node
)
SELECT 1 FROM counted
