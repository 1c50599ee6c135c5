-- Takes items of a batch, up to its concurrency, and charges the wallet for items that were
-- never taken before: in their order, as far as the balance allows. Locks wallet, batch and
-- items, in this order. Takes nothing of a batch that is being cancelled.
-- :quiet whether the holder is remote and has not reported yet
WITH {members}, w AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.batch, m.holder, m.lease, m.room, m.quiet, w.id AS wallet, w.balance, w.negative, w.version AS rows
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
     CROSS JOIN LATERAL (
           SELECT w.id, w.balance, w.negative, w.version FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w
), b AS MATERIALIZED (
    SELECT w.member, w.shard, w.workspace, w.batch, w.holder, w.lease, w.quiet, w.wallet, w.balance, w.negative, w.rows,
           b.status, b.items, b.next, b.waiting, b.running, b.charged, b.version, least(w.room, b.parallel - b.running) AS room, b.timeout, b.artifacts
      FROM w CROSS JOIN LATERAL (
           SELECT b.status, b.items, b.next, b.waiting, b.running, b.charged, b.version, b.parallel, b.cancel_requested, b.timeout, b.artifacts
             FROM {schema}.batch b
            WHERE b.shard = w.shard AND b.workspace = w.workspace AND b.id = w.batch
              FOR UPDATE) AS b
     WHERE b.status || '' IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel
), t AS MATERIALIZED (
    SELECT {now} AS now FROM b
), again AS MATERIALIZED (
    SELECT b.member, i.key, i.n
      FROM b CROSS JOIN LATERAL (
           SELECT i.key, i.n
             FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.batch AND i.state = 'waiting' AND i.due_at <= (SELECT {now})
            ORDER BY i.due_at
            LIMIT b.room
              FOR UPDATE) AS i
), first AS MATERIALIZED (
    SELECT i.key, i.n, i.cost, b.member, b.negative, b.balance, pg_catalog.sum(i.cost) OVER (PARTITION BY b.member ORDER BY i.n) AS sum,
           pg_catalog.count(*) FILTER (WHERE i.cost > 0) OVER (PARTITION BY b.member ORDER BY i.n) AS paid
      FROM b CROSS JOIN LATERAL (
           SELECT i.key, i.n, i.cost
             FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.shard + 0 = b.shard + 0 AND i.workspace || '/' || i.batch = b.workspace || '/' || b.batch AND i.n > b.next
            ORDER BY i.n
            LIMIT greatest(b.room - (SELECT pg_catalog.count(*) FROM again), 0)) AS i
), admitted AS MATERIALIZED (
    SELECT f.member, f.key, f.n, f.cost, f.sum::bigint AS sum, f.paid
      FROM first f
     WHERE f.sum = 0::numeric OR f.sum <= f.balance::numeric OR f.negative AND f.balance::numeric - f.sum >= -9223372036854775807::numeric
), sums AS MATERIALIZED (
    SELECT b.member, (SELECT pg_catalog.count(*) FROM again) AS again, (SELECT pg_catalog.count(*) FROM admitted) AS first,
           coalesce((SELECT pg_catalog.max(a.sum) FROM admitted a), 0) AS cost, coalesce((SELECT pg_catalog.max(a.paid) FROM admitted a), 0) AS paid
      FROM b
), chosen AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.batch, x.key, b.holder, b.quiet, t.now, t.now + least(b.lease, b.timeout)::float8 * interval '1 ms' AS until
      FROM t, b, (SELECT again.key FROM again UNION ALL SELECT admitted.key FROM admitted) AS x
), taken AS (
    UPDATE {schema}.item i
       SET state = 'running', charged = i.cost, holder = c.holder, epoch = i.epoch + 1, quiet = c.quiet = 1, until = c.until, taken_at = c.now, due_at = NULL, updated_at = c.now
      FROM chosen c
     WHERE i.shard = ANY (ARRAY[c.shard]) AND i.workspace = c.workspace AND i.batch = c.batch AND i.key = c.key
    RETURNING i.n, i.key, i.epoch, i.input, i.failures, i.deaths
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT b.shard, b.workspace, b.wallet, b.rows + a.paid, -a.cost, b.balance - a.sum, 'charge', '$batch/' || b.batch || '/charge/' || a.key, t.now
      FROM t, b JOIN admitted a ON a.member = b.member
     WHERE a.cost > 0
), charged_wallet AS (
    UPDATE {schema}.wallet w
       SET balance = b.balance - sums.cost, version = b.rows + sums.paid, updated_at = t.now
      FROM t, b, sums
     WHERE w.shard = ANY (ARRAY[b.shard]) AND w.workspace = b.workspace AND w.id = b.wallet AND sums.paid > 0
), moved AS (
    UPDATE {schema}.batch c
       SET status = 'RUNNING', next = b.next + sums.first, waiting = b.waiting - sums.again, running = b.running + sums.again + sums.first,
           charged = b.charged + sums.cost, version = b.version + 1, served_at = t.now, updated_at = t.now
      FROM t, b, sums
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.batch AND sums.again + sums.first > 0
    RETURNING b.member, c.version
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'itemsTaken',
           pg_catalog.json_build_object('keys', (SELECT pg_catalog.json_agg(taken.key ORDER BY taken.n) FROM taken), 'charged', sums.cost), t.now
      FROM t, sums, m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END,
       CASE WHEN moved.member IS NOT NULL
            THEN (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(taken.key, taken.epoch, taken.input, taken.failures, taken.deaths) ORDER BY taken.n)::text FROM taken)
            ELSE '[]' END,
       coalesce((SELECT t.now FROM t), {now}) + least(m.lease, coalesce(b.timeout, m.lease))::float8 * interval '1 ms', coalesce(b.timeout, 0), coalesce(b.artifacts, false),
       coalesce(moved.member IS NULL AND b.running = 0 AND b.waiting = 0 AND b.next < b.items, false)
  FROM m LEFT JOIN b ON b.member = m.member
  LEFT JOIN moved ON moved.member = m.member
