-- Items of a batch in their order. What nobody has decided on is decided by the end of
-- the batch.
-- ?1 shard, ?2 workspace, ?3 batch, ?4 behind which, ?5 state ('' for all), ?6 limit
-- do
SELECT i.n, i.key, i.cost, i.charged, i.failures, i.deaths, i.lost, i.epoch, coalesce(i.holder, ''), coalesce(i.until, 0),
       CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' ELSE i.state END,
       CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' WHEN b.status = 'COMPLETED' AND i.state = 'succeeded' THEN 'accepted'
            ELSE coalesce(i.decision, '') END,
       i.input, coalesce(i.output, ''), coalesce(i.error, '')
  FROM holdfast_batch AS b
  JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3 AND i.n > ?4
   AND (?5 = '' OR ?5 = CASE WHEN b.status = 'CANCELLED' AND i.state = 'pending' THEN 'cancelled' ELSE i.state END)
 ORDER BY i.n
 LIMIT +?6
