-- Gives up an item and refunds what it cost; the item is then cleaned up. If the wallet is
-- missing or the refund would overflow it, a charged item is not given up.
-- do
UPDATE holdfast_item AS i
   SET state = 'failed', failures = i.failures + (:how = 'fail'), deaths = i.deaths + (:how = 'died'),
       error = CASE WHEN :how = 'died' THEN 'the lease of holder ' || i.holder || ' expired' ELSE :error END,
       holder = NULL, until = NULL, dirty = 1, sweep_at = {now}, updated_at = {now}
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
   AND i.state = 'running' AND i.epoch = :epoch AND (i.until <= {now}) = (:how = 'died')
   AND (i.charged = 0 OR EXISTS (
       SELECT 1 FROM holdfast_batch AS b JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
        WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND typeof(w.balance + i.charged) = 'integer'))
RETURNING state, epoch, failures, deaths, 0, 0, charged
-- also
INSERT INTO holdfast_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
SELECT w.shard, w.workspace, w.id, w.version + 1, :did7, w.balance + :did7, 'return', '$batch/' || :batch || '/return/' || :key, {now}
  FROM holdfast_batch AS b JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND :did7 > 0
-- also
UPDATE holdfast_wallet AS w
   SET balance = w.balance + :did7, version = w.version + 1, updated_at = {now}
  FROM holdfast_batch AS b
 WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet AND b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND :did7 > 0
-- then
UPDATE holdfast_batch AS b
   SET running = b.running - 1, failed = b.failed + 1, dirty = b.dirty + 1, refunded = b.refunded + :did7, version = b.version + 1, updated_at = {now}
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'itemGivenUp',
       json_object('key', :key, 'returned', :did7, 'failures', :did3, 'deaths', :did4,
                   'counts', json_object('pending', b.items - b.next + b.waiting, 'running', b.running, 'succeeded', b.succeeded, 'failed', b.failed,
                                         'cancelled', b.cancelled, 'accepted', b.accepted)), NULL, NULL, NULL, b.updated_at
  {include batches/by_id}
-- then
SELECT :did1, :did2, :did3, :did4, 0, 0
-- else
SELECT coalesce(i.state, ''), coalesce(i.epoch, 0), coalesce(i.failures, 0), coalesce(i.deaths, 0),
       coalesce(i.state = 'running' AND i.epoch = :epoch AND (i.until <= {now}) = (:how = 'died'), 0), w.id IS NULL
  FROM (SELECT 1)
  LEFT JOIN holdfast_item AS i ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
  LEFT JOIN holdfast_batch AS b ON b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
  LEFT JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
