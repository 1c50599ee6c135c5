-- Reads :scan batches in the order of their ids, and returns those that match a filter and are no bulks, and the last one that it read.
-- :last sorts after every id; :status, :handler, :wallet ('' for any)
WITH edge AS (
    SELECT b.id FROM {schema}.batch AS b
     WHERE b.shard = :shard AND b.workspace = :workspace AND b.id > :after
     ORDER BY b.id
     LIMIT 1 OFFSET :scan - 1
), j AS (
    SELECT b.*, coalesce(b.id = (SELECT edge.id FROM edge), false) AS at_edge,
           b.about IS NULL AND (:status = '' OR b.status = :status) AND (:handler = '' OR b.handler = :handler) AND (:wallet = '' OR b.wallet = :wallet)
           AND {include lists/matches_times b} AS wanted
      FROM {schema}.batch AS b
     WHERE b.shard = :shard AND b.workspace = :workspace AND b.id > :after AND b.id <= coalesce((SELECT edge.id FROM edge), :last)
)
SELECT b.wanted, b.at_edge, b.id, b.wallet, b.handler, b.status, b.parallel, b.attempts, b.allowed, b.timeout, b.artifacts, b.sealed, b.cancel_requested, b.items, b.next,
       b.waiting, b.running, b.succeeded, b.accepted, b.failed, b.cancelled, b.dirty, b.charged, b.refunded, b.version, coalesce(b.error, ''),
       b.created_at, b.updated_at, coalesce(b.pruned_at, {no_time}), coalesce(b.about{text}, '')
  FROM j AS b
 WHERE b.wanted OR b.at_edge
 ORDER BY b.id
 LIMIT :limit
