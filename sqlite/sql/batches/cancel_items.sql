-- Tears down a batch that is being cancelled: marks one page of taken, undecided items as
-- cancelled, ends their leases and refunds exactly what they cost. If the wallet is missing
-- or the refund would overflow it, no page with charged items is cancelled.
-- do
UPDATE holdfast_batch AS b
   SET status = 'CANCELLING', need = 0, version = b.version + 1, updated_at = {now},
       waiting = b.waiting - p.waiting, running = b.running - p.running, succeeded = b.succeeded - p.succeeded,
       cancelled = b.cancelled + p.items, dirty = b.dirty + p.items, refunded = b.refunded + p.cost
  FROM (SELECT count(*) AS items, coalesce(sum(x.charged), 0) AS cost, count(*) FILTER (WHERE x.state = 'waiting') AS waiting,
               count(*) FILTER (WHERE x.state = 'running') AS running, count(*) FILTER (WHERE x.state = 'succeeded') AS succeeded
          FROM (SELECT i.n, i.charged, i.state FROM holdfast_item AS i
                 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.n > :after
                   AND i.n <= (SELECT c.next FROM holdfast_batch AS c WHERE c.shard = :shard AND c.workspace = :workspace AND c.id = :batch)
                   AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL
                 ORDER BY i.n
                 LIMIT :room) AS x) AS p
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
   AND (p.items > 0 OR b.status <> 'CANCELLING')
   AND (p.cost = 0 OR EXISTS (SELECT 1 FROM holdfast_wallet AS w WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
                                                                   AND typeof(w.balance + p.cost) = 'integer'))
RETURNING 'fine', coalesce((SELECT max(x.n)
                              FROM (SELECT i.n FROM holdfast_item AS i
                                     WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.n > :after AND i.n <= next
                                       AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL
                                     ORDER BY i.n
                                     LIMIT :room) AS x), :after), waiting + running + succeeded - accepted
-- also
INSERT INTO holdfast_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
SELECT w.shard, w.workspace, w.id, w.version + row_number() OVER (ORDER BY i.n), i.charged, w.balance + sum(i.charged) OVER (ORDER BY i.n), 'refund',
       '$batch/' || :batch || '/refund/' || i.key, b.updated_at
  FROM holdfast_batch AS b
  JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
  JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.n > :after AND i.n <= :did2
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL AND i.charged > 0
-- also
UPDATE holdfast_wallet AS w
   SET balance = w.balance + s.cost, version = w.version + s.paid, updated_at = {now}
  FROM (SELECT b.wallet, sum(i.charged) AS cost, count(*) AS paid
          FROM holdfast_batch AS b JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.n > :after AND i.n <= :did2
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL AND i.charged > 0
         GROUP BY b.wallet) AS s
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = s.wallet
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'itemsCancelled',
       json_object('flipped', count(i.n), 'refunded', coalesce(sum(i.charged), 0)), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
  LEFT JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.n > :after AND i.n <= :did2
                              AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- then
SELECT 'fine', count(*), coalesce(sum(i.charged), 0), :did2, :did3
  FROM holdfast_item AS i
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.n > :after AND i.n <= :did2
   AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL
-- also
UPDATE holdfast_item AS i
   SET state = 'cancelled', decision = 'cancelled', epoch = i.epoch + (i.holder IS NOT NULL), late = i.until, holder = NULL, until = NULL, due_at = NULL,
       dirty = 1, sweep_at = {now}, updated_at = {now}
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.n > :after AND i.n <= :did2 AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL
-- else
SELECT CASE WHEN b.id IS NULL OR NOT b.cancel_requested OR b.status IN ('CANCELLED', 'COMPLETED') THEN 'none'
            WHEN b.waiting + b.running + b.succeeded = b.accepted THEN 'fine' WHEN w.id IS NULL THEN 'missing' ELSE 'full' END, 0, 0, :after,
       coalesce(b.waiting + b.running + b.succeeded - b.accepted, 0)
  FROM (SELECT 1)
  LEFT JOIN holdfast_batch AS b ON b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
  LEFT JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
