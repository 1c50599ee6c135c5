-- Posts to a ledger, and adds to the balance. A reference that the ledger has already
-- posts nothing, and answers what it posted. Nothing is posted that would take a balance
-- below zero which may not be, or beyond 64 bits.
-- ?1 shard, ?2 workspace, ?3 command, ?4 wallet, ?5 delta, ?6 reason, ?7 reference
-- do
UPDATE holdfast_wallet AS w
   SET balance = w.balance + ?5, version = w.version + 1, updated_at = {now}
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4
   AND typeof(w.balance + ?5) = 'integer' AND (?5 >= 0 OR w.negative OR w.balance + ?5 >= 0)
   AND NOT EXISTS (SELECT 1 FROM holdfast_ledger AS l
                    WHERE l.shard = ?1 AND l.workspace = ?2 AND l.wallet = ?4 AND l.reference = ?7)
RETURNING 'posted', balance, version, negative, 0, 1
-- then
INSERT INTO holdfast_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
SELECT ?1, ?2, ?4, w.version, ?5, w.balance, ?6, ?7, w.updated_at
  FROM holdfast_wallet AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4
-- else
SELECT CASE WHEN w.id IS NULL THEN 'missing' WHEN l.n IS NOT NULL THEN 'known' ELSE 'refused' END,
       coalesce(w.balance, 0), coalesce(w.version, 0), coalesce(w.negative, 0), coalesce(l.delta, 0), 0
  FROM (SELECT 1)
  LEFT JOIN holdfast_wallet AS w ON w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4
  LEFT JOIN holdfast_ledger AS l ON l.shard = ?1 AND l.workspace = ?2 AND l.wallet = ?4 AND l.reference = ?7
