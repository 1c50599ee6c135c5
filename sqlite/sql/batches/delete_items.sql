-- Deletes a page of the items of a batch that is past its retention, from a key on, and marks the batch, so that no reader takes the rest for
-- all items. One that still has to be looked at after its cleanup stays until then. When a page from the beginning finds less than it may
-- delete, a bulk is deleted with its row. Before that, the batch goes behind the other ones.
-- do
UPDATE holdfast_batch AS b
   SET pruned_at = coalesce(b.pruned_at, {now}),
       prune_at = CASE WHEN p.size = :room OR :after <> '' THEN {now}
                       ELSE (SELECT CASE WHEN count(*) > 0 THEN max(max(i.sweep_at), {now} + 60000) END FROM holdfast_item AS i
                              WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND +i.sweep_at IS NOT NULL) END -- + makes it use the key
  FROM (SELECT count(*) AS size FROM {include batches/deletable}) AS p
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND b.prune_at <= {now}
RETURNING (SELECT count(*) FROM {include batches/deletable}),
          coalesce((SELECT max(d.key) FROM {include batches/deletable} HAVING count(*) = :room), ''), prune_at IS NULL
-- also
DELETE FROM holdfast_item AS i
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key IN (SELECT d.key FROM {include batches/deletable})
-- also
DELETE {include batches/by_id} AND b.about IS NOT NULL AND b.prune_at IS NULL
-- else
SELECT 0, '', 0
