-- Where a page of the history ends, and how long it is.
-- $1 shard, $2 workspace, not looked at: all are read in order, $3 after, $4 up to,
-- both ids as text, $5 limit
SELECT pg_catalog.count(*), coalesce(pg_catalog.max(pg_catalog.replace(p.id::text, '-', '')), '')
  FROM (SELECT o.id FROM {schema}.history o
         WHERE o.shard = $1::smallint AND o.id > $3::text::uuid AND o.id < $4::text::uuid AND $2::text IS NOT NULL
         ORDER BY o.shard, o.id
         LIMIT $5::bigint) AS p
