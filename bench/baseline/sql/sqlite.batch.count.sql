SELECT b.items, b.next, b.running, b.succeeded, b.charged, b.version, w.balance,
(SELECT count(*) FROM baseline_item AS i
  WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?3 AND i.state = 'succeeded' AND i.epoch = 1 AND i.charged = i.cost),
(SELECT count(*) FROM baseline_ledger AS l WHERE l.shard = ?1 AND l.workspace = ?2 AND l.wallet = b.wallet),
(SELECT coalesce(sum(l.delta), 0) FROM baseline_ledger AS l WHERE l.shard = ?1 AND l.workspace = ?2 AND l.wallet = b.wallet),
(SELECT count(*) FROM baseline_history AS h WHERE h.shard = ?1 AND h.workspace = ?2 AND h.stream = '$batch/' || ?3 AND h.name = 'itemSucceeded')
FROM baseline_batch AS b JOIN baseline_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3
