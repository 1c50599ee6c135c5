-- Lists batches with items to take, or to pause, of one workspace or of all. The order is round robin: each workspace has one batch
-- before any workspace has a second, and so has each handler within a workspace; the longest unserved batch comes first.
SELECT d.workspace, d.id, d.handler
  FROM (
SELECT b.workspace, b.id, b.handler, b.served_at, row_number() OVER (PARTITION BY b.workspace, b.handler ORDER BY b.served_at) AS nth
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
 WHERE b.shard = :shard AND b.handler IN (SELECT h.value FROM json_each(:handlers) AS h) AND (:workspace = '' OR b.workspace = :workspace)
   AND NOT EXISTS (SELECT 1 FROM json_each(:except) AS x WHERE x.value ->> 0 = b.workspace AND (x.value ->> 1 = '' OR x.value ->> 1 = b.handler))
   AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested
   AND b.running < b.parallel
   AND (:kind = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS r WHERE r.shard = b.shard AND r.workspace = b.workspace AND r.name = b.handler AND r.kind = :kind))
   AND (b.next < b.items AND EXISTS (
           SELECT 1 FROM holdfast_wallet AS w
             JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.n = b.next + 1
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              AND (w.negative OR i.cost = 0 OR i.cost <= w.balance OR b.running + b.waiting = 0))
        OR b.waiting > 0 AND EXISTS (
       SELECT 1 FROM holdfast_item AS i WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id
                                          AND i.state = 'waiting' AND i.due_at <= {now}))
) AS d
 ORDER BY row_number() OVER (PARTITION BY d.workspace ORDER BY d.nth, d.served_at), d.served_at
 LIMIT :limit
