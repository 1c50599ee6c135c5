-- Returns the newest migration, and the database's time.
SELECT (SELECT coalesce(pg_catalog.max(g.number), 0) FROM {schema}.migration g), {now}
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
