-- Reads :scan batches, the newest first, and returns those that match a filter, and the last one that it read. It continues
-- after the batch :before, which always exists; an id that sorts after all others is no batch, and means the newest.
-- The index has no bulks. :status, :handler, :wallet ('' for any)
WITH place AS NOT MATERIALIZED (
    SELECT coalesce((SELECT p.created_at FROM {schema}.batch AS p WHERE p.shard = :shard AND p.workspace = :workspace AND p.id = :before),
                    (SELECT p.created_at FROM {schema}.batch AS p WHERE p.shard = :shard AND p.workspace = :workspace AND p.about IS NULL
                      ORDER BY p.created_at DESC
                      LIMIT 1)) AS created_at
), edge AS (
    SELECT b.created_at, b.id FROM {schema}.batch AS b
     WHERE b.shard = :shard AND b.workspace = :workspace AND b.about IS NULL AND (b.created_at, b.id) < ((SELECT place.created_at FROM place), :before)
     ORDER BY b.created_at DESC, b.id DESC
     LIMIT 1 OFFSET :scan - 1
), j AS (
    SELECT b.*, coalesce(b.id = (SELECT edge.id FROM edge), false) AS at_edge,
           (:status = '' OR b.status = :status) AND (:handler = '' OR b.handler = :handler) AND (:wallet = '' OR b.wallet = :wallet)
           AND {include lists/matches_times b} AS wanted
      FROM {schema}.batch AS b
     WHERE b.shard = :shard AND b.workspace = :workspace AND b.about IS NULL AND (b.created_at, b.id) < ((SELECT place.created_at FROM place), :before)
       AND (b.created_at, b.id) >= (coalesce((SELECT edge.created_at FROM edge), {no_time}), coalesce((SELECT edge.id FROM edge), ''))
)
SELECT b.wanted, b.at_edge, b.id, b.wallet, b.handler, b.status, b.parallel, b.attempts, b.allowed, b.timeout, b.artifacts, b.sealed, b.cancel_requested, b.items, b.next,
       b.waiting, b.running, b.succeeded, b.accepted, b.failed, b.cancelled, b.dirty, b.charged, b.refunded, b.version, coalesce(b.error, ''),
       b.created_at, b.updated_at, coalesce(b.pruned_at, {no_time}), coalesce(b.about{text}, '')
  FROM j AS b
 WHERE b.wanted OR b.at_edge
 ORDER BY b.created_at DESC, b.id DESC
 LIMIT :limit
