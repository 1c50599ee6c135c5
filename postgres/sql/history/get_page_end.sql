-- Returns the end of a page of the history, and its length.
-- :after and :upto ids as text
SELECT pg_catalog.count(*), coalesce(pg_catalog.max(pg_catalog.replace(p.id::text, '-', '')), '')
  FROM (SELECT o.id FROM {schema}.history o
         WHERE o.shard = :shard AND o.id > :after::uuid AND o.id < :upto::uuid AND :workspace IS NOT NULL
         ORDER BY o.shard, o.id
         LIMIT :limit) AS p
