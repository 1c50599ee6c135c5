-- Lists the items of a batch in their order.
SELECT i.n, i.key, i.cost, i.charged, i.failures, i.deaths, i.lost, i.epoch, coalesce(i.holder, ''), coalesce(i.until, 0),
       CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' ELSE i.state END,
       CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' WHEN b.status = 'COMPLETED' AND i.state = 'succeeded' THEN 'accepted'
            ELSE coalesce(i.decision, '') END,
       i.input, coalesce(i.output, ''), coalesce(i.error, '')
  FROM holdfast_batch AS b
  JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND i.n > :after AND i.n <= :upto
   AND (:state = '' OR :state = CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' ELSE i.state END)
 ORDER BY i.n
 LIMIT :limit
