-- The newest migration, and the database's time.
SELECT (SELECT coalesce(pg_catalog.max(g.number), 0) FROM {schema}.migration g), {now}
 WHERE $1::smallint IS NOT NULL AND $2::text IS NOT NULL
