-- Returns the newest migration, the database's time, and whether servers delete by default what has ended.
SELECT (SELECT coalesce(pg_catalog.max(g.number), 0) FROM {schema}.migration g), {now}, coalesce((SELECT r.by_default FROM {schema}.retention r WHERE r.one = 1), false)
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
