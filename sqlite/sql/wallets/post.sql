-- Posts to a ledger, and adds to the balance. A reference that the ledger already has posts
-- nothing, and returns the existing posting. A posting is refused if it would take a balance
-- below zero that may not be negative, or out of 64 bits.
-- do
UPDATE holdfast_wallet AS w
   SET balance = w.balance + :delta, version = w.version + 1, updated_at = {now}
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :wallet
   AND typeof(w.balance + :delta) = 'integer' AND (:delta >= 0 OR w.negative OR w.balance + :delta >= 0)
   AND NOT EXISTS (SELECT 1 FROM holdfast_ledger AS l
                    WHERE l.shard = :shard AND l.workspace = :workspace AND l.wallet = :wallet AND l.reference = :reference)
RETURNING 'posted', balance, version, negative, 0, 1
-- then
INSERT INTO holdfast_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
SELECT :shard, :workspace, :wallet, w.version, :delta, w.balance, :reason, :reference, w.updated_at
  FROM holdfast_wallet AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :wallet
-- else
SELECT CASE WHEN w.id IS NULL THEN 'missing' WHEN l.n IS NOT NULL THEN 'known' ELSE 'refused' END,
       coalesce(w.balance, 0), coalesce(w.version, 0), coalesce(w.negative, 0), coalesce(l.delta, 0), 0
  FROM (SELECT 1)
  LEFT JOIN holdfast_wallet AS w ON w.shard = :shard AND w.workspace = :workspace AND w.id = :wallet
  LEFT JOIN holdfast_ledger AS l ON l.shard = :shard AND l.workspace = :workspace AND l.wallet = :wallet AND l.reference = :reference
