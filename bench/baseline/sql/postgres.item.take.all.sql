-- Takes the next items of a batch, as many as its wallet can pay for. They are
-- changed as a range of numbers: a join with a list of any length would read the whole
-- table.
-- $1 shard, $2 workspace, $3 id of the event, $4 batch, $5 holder, $6 lease in ms,
-- $7 limit
WITH b AS MATERIALIZED (
    SELECT b.wallet, b.next, least($7::bigint, b.parallel - b.running) AS room, w.balance, w.version
      FROM {schema}.batch b JOIN {schema}.wallet w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
     WHERE b.shard = $1::smallint AND b.workspace = $2::text AND b.id = $4::text
       AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND b.next < b.items
       FOR UPDATE
), t AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM b
), due AS MATERIALIZED (
    SELECT i.key, i.n, i.cost, sum(i.cost) OVER (ORDER BY i.n) AS sum, count(*) FILTER (WHERE i.cost > 0) OVER (ORDER BY i.n) AS paid
      FROM b CROSS JOIN LATERAL (
           SELECT i.key, i.n, i.cost
             FROM {schema}.item i
            WHERE i.shard = $1 AND i.workspace = $2 AND i.batch = $4 AND i.n > b.next
            ORDER BY i.n
            LIMIT b.room) AS i
), able AS MATERIALIZED (
    SELECT due.* FROM due, b WHERE due.sum <= b.balance
), sums AS MATERIALIZED (
    SELECT count(*) AS taken, coalesce(max(sum), 0)::bigint AS cost, coalesce(max(paid), 0) AS paid FROM able
), taken AS (
    UPDATE {schema}.item i
       SET state = 'running', charged = i.cost, holder = $5::text, epoch = i.epoch + 1,
           until = t.now + $6::bigint * interval '1 ms', taken_at = t.now, updated_at = t.now
      FROM t, b, sums
     WHERE i.shard = $1 AND i.workspace = $2 AND i.batch = $4 AND i.n > b.next AND i.n <= b.next + sums.taken
    RETURNING i.n, i.key, i.epoch, i.until, i.input
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT $1, $2, b.wallet, b.version + able.paid, -able.cost, b.balance - able.sum, 'charge', '$batch/' || $4 || '/charge/' || able.key, t.now
      FROM t, b, able
     WHERE able.cost > 0
), spent AS (
    UPDATE {schema}.wallet w
       SET balance = b.balance - sums.cost, version = b.version + sums.paid, updated_at = t.now
      FROM t, b, sums
     WHERE w.shard = $1 AND w.workspace = $2 AND w.id = b.wallet AND sums.paid > 0
), moved AS (
    UPDATE {schema}.batch c
       SET status = 'RUNNING', next = c.next + sums.taken, running = c.running + sums.taken, charged = c.charged + sums.cost,
           version = c.version + 1, served_at = t.now, updated_at = t.now
      FROM t, sums
     WHERE c.shard = $1 AND c.workspace = $2 AND c.id = $4 AND sums.taken > 0
    RETURNING c.version
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$batch/' || $4, moved.version, 'itemsTaken',
           json_build_object('keys', (SELECT json_agg(able.key ORDER BY able.n) FROM able), 'charged', sums.cost), t.now
      FROM t, moved, sums
)
SELECT key, epoch, until, input::text FROM taken ORDER BY n
