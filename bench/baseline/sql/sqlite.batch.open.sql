SELECT b.wallet, b.next, min(?4, b.parallel - b.running), w.balance, w.version
FROM baseline_batch AS b JOIN baseline_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3
AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND b.next < b.items
