-- Adds items to a batch that is not sealed, not being cancelled and not finished. Items
-- that the batch already has are skipped; an item whose cost or input differs from the
-- stored one refuses the whole list. The list is read once, and each item is looked up by key.
-- do
UPDATE holdfast_batch AS b
   SET items = b.items + (SELECT count(*) FROM json_each(:items) AS x
                           WHERE NOT EXISTS (SELECT 1 FROM holdfast_item AS i
                                              WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0)),
       version = b.version + 1, updated_at = {now}
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
   AND NOT b.sealed AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
   AND EXISTS (SELECT 1 FROM json_each(:items) AS x
                WHERE NOT EXISTS (SELECT 1 FROM holdfast_item AS i WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0))
   AND NOT EXISTS (SELECT 1 FROM json_each(:items) AS x CROSS JOIN holdfast_item AS i
                       ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0
                    WHERE i.cost <> x.value ->> 1 OR i.input <> x.value -> 2)
RETURNING 'open', items - coalesce((SELECT max(i.n) FROM holdfast_item AS i WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch), 0), ''
-- also
INSERT INTO holdfast_item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
SELECT b.shard, b.workspace, b.id, x.value ->> 0, b.items - :did2 + row_number() OVER (ORDER BY x.key), x.value ->> 1, 0, 'pending', x.value -> 2,
       0, 0, 0, 0, 0, b.updated_at
  FROM holdfast_batch AS b JOIN json_each(:items) AS x
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
   AND NOT EXISTS (SELECT 1 FROM holdfast_item AS i WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0)
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'itemsAdded', json_object('added', :did2, 'items', b.items), NULL, NULL, NULL, b.updated_at
  {include batches/by_id}
-- else
SELECT CASE WHEN b.id IS NULL THEN 'missing'
            WHEN b.sealed OR b.cancel_requested OR b.status IN ('CANCELLED', 'COMPLETED') THEN 'closed'
            WHEN o.key IS NOT NULL THEN 'other' ELSE 'open' END, 0, coalesce(o.key, '')
  FROM (SELECT 1)
  LEFT JOIN holdfast_batch AS b ON b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
  LEFT JOIN (SELECT i.key FROM json_each(:items) AS x CROSS JOIN holdfast_item AS i
                 ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0
              WHERE i.cost <> x.value ->> 1 OR i.input <> x.value -> 2 ORDER BY x.key LIMIT 1) AS o
