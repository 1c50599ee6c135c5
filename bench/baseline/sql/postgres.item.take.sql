-- Takes the next item of a batch, if its wallet can pay for it. Wallet and batch
-- are locked first: both move with the item, or nothing does.
-- $1 shard, $2 workspace, $3 id of the event, $4 batch, $5 holder, $6 lease in ms
WITH b AS MATERIALIZED (
    SELECT b.wallet, b.next, w.balance
      FROM {schema}.batch b JOIN {schema}.wallet w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
     WHERE b.shard = $1::smallint AND b.workspace = $2::text AND b.id = $4::text
       AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND b.next < b.items
       FOR UPDATE
), taken AS (
    UPDATE {schema}.item i
       SET state = 'running', charged = i.cost, holder = $5::text, epoch = i.epoch + 1,
           until = clock_timestamp() + $6::bigint * interval '1 ms', taken_at = clock_timestamp(), updated_at = clock_timestamp()
      FROM b
     WHERE i.shard = $1 AND i.workspace = $2 AND i.batch = $4 AND i.n = b.next + 1 AND i.cost <= b.balance
    RETURNING i.key, i.cost, i.epoch, i.until, i.input, i.taken_at
), spent AS (
    UPDATE {schema}.wallet w
       SET balance = w.balance - taken.cost, version = w.version + 1, updated_at = taken.taken_at
      FROM b, taken
     WHERE w.shard = $1 AND w.workspace = $2 AND w.id = b.wallet AND taken.cost > 0
    RETURNING w.id, w.version, w.balance
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT $1, $2, spent.id, spent.version, -taken.cost, spent.balance, 'charge', '$batch/' || $4 || '/charge/' || taken.key, taken.taken_at
      FROM spent, taken
), moved AS (
    UPDATE {schema}.batch c
       SET status = 'RUNNING', next = c.next + 1, running = c.running + 1, charged = c.charged + taken.cost,
           version = c.version + 1, served_at = taken.taken_at, updated_at = taken.taken_at
      FROM taken
     WHERE c.shard = $1 AND c.workspace = $2 AND c.id = $4
    RETURNING c.version
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$batch/' || $4, moved.version, 'itemsTaken',
           json_build_object('keys', json_build_array(taken.key), 'charged', taken.cost), taken.taken_at
      FROM moved, taken
)
SELECT key, epoch, until, input::text FROM taken
