-- Accepts succeeded, undecided items of a batch: the named ones, each found by its key, or all.
-- do
UPDATE holdfast_batch AS b
   SET accepted = b.accepted + n.taken, version = b.version + 1, updated_at = {now}
  FROM (SELECT count(*) AS taken FROM {include batches/undecided}) AS n
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND n.taken > 0
   AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
   AND NOT EXISTS (SELECT 1 FROM json_each(coalesce(:keys, '[]')) AS k
                    WHERE NOT EXISTS (SELECT 1 FROM holdfast_item AS i WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = k.value))
RETURNING 1, (SELECT count(*) FROM {include batches/undecided}), ''
-- also
UPDATE holdfast_item AS i
   SET decision = 'accepted', updated_at = {now}
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.state = 'succeeded' AND i.decision IS NULL
   AND i.key IN (SELECT u.key FROM {include batches/undecided})
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'itemsAccepted', json_object('taken', :did2, 'accepted', b.accepted), NULL, NULL, :actor, b.updated_at
  {include batches/by_id}
-- else
SELECT EXISTS (SELECT 1 {include batches/by_id}), 0,
       coalesce((SELECT min(k.value) FROM json_each(coalesce(:keys, '[]')) AS k
                  WHERE NOT EXISTS (SELECT 1 FROM holdfast_item AS i WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = k.value)), '')
