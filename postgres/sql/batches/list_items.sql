-- Lists the items of a batch in their order. The end of the batch decides the undecided
-- items.
-- :state ('' for all)
SELECT i.n, i.key, i.cost, i.charged, i.failures, i.deaths, i.lost, i.epoch, coalesce(i.holder, ''), coalesce(i.until, 'epoch'::timestamptz),
       CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' ELSE i.state END,
       CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' WHEN b.status = 'COMPLETED' AND i.state = 'succeeded' THEN 'accepted'
            ELSE coalesce(i.decision, '') END,
       i.input::text, coalesce(i.output::text, ''), coalesce(i.error, '')
  FROM {schema}.batch b
 CROSS JOIN LATERAL (
       SELECT i.n, i.key, i.cost, i.charged, i.failures, i.deaths, i.lost, i.epoch, i.holder, i.until, i.state, i.decision, i.input, i.output, i.error
         FROM {schema}.item i
        WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.shard + 0 = b.shard + 0 AND i.workspace || '/' || i.batch = b.workspace || '/' || b.id AND i.n > :after AND i.n <= :upto
          AND (:state = '' OR :state = CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' ELSE i.state END)
        ORDER BY i.n
        LIMIT :limit) AS i
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
 ORDER BY i.n
