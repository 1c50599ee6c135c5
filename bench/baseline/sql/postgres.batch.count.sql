-- What a batch, its items, its wallet, its wallet's ledger and its history say, each
-- by itself.
-- $1 shard, $2 workspace, $3 batch
SELECT b.items, b.next, b.running, b.succeeded, b.charged, b.version, w.balance,
       (SELECT count(*) FROM {schema}.item i
         WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.state = 'succeeded' AND i.epoch = 1 AND i.charged = i.cost),
       (SELECT count(*) FROM {schema}.ledger l WHERE l.shard = b.shard AND l.workspace = b.workspace AND l.wallet = b.wallet),
       (SELECT coalesce(sum(l.delta), 0)::bigint FROM {schema}.ledger l WHERE l.shard = b.shard AND l.workspace = b.workspace AND l.wallet = b.wallet),
       (SELECT count(*) FROM {schema}.history h
         WHERE h.shard = b.shard AND h.workspace = b.workspace AND h.stream = '$batch/' || b.id AND h.name = 'itemSucceeded')
  FROM {schema}.batch b JOIN {schema}.wallet w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
 WHERE b.shard = $1::smallint AND b.workspace = $2::text AND b.id = $3::text
