-- Takes items of a batch that were never taken before, as batches.take, if no item waits for a retry and the wallet covers all
-- of them; otherwise does nothing and returns nothing. The items behind next are changed only under the batch's lock.
WITH w AS MATERIALIZED (
    SELECT w.shard, w.workspace, w.id, w.balance, w.negative, w.version
      FROM {schema}.wallet w
     WHERE w.shard = :shard AND w.workspace = :workspace
       AND w.id = (SELECT b.wallet FROM {schema}.batch b WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch)
       FOR UPDATE
), b AS MATERIALIZED (
    SELECT w.shard, w.workspace, b.id, w.id AS wallet, w.balance, w.negative, w.version AS rows, b.next, least(:room, b.parallel - b.running) AS room, b.timeout, b.artifacts, {now} AS now
      FROM w CROSS JOIN LATERAL (
           SELECT b.id, b.next, b.parallel, b.running, b.timeout, b.artifacts
             FROM {schema}.batch b
            WHERE b.shard = w.shard AND b.workspace = w.workspace AND b.id = :batch
              AND b.status || '' IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel
              FOR UPDATE) AS b
     WHERE {include registry/is_current}
       AND NOT EXISTS (SELECT 1 FROM {schema}.item i
                        WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.state = 'waiting' AND i.due_at <= (SELECT {now}))
), next AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.id, i.key, i.cost
      FROM b CROSS JOIN LATERAL (
           SELECT i.key, i.cost
             FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.shard + 0 = b.shard + 0 AND i.workspace || '/' || i.batch = b.workspace || '/' || b.id AND i.n > b.next
            ORDER BY i.n
            LIMIT b.room) AS i
), first AS MATERIALIZED (
    SELECT b.*, b.now + least(:lease, b.timeout)::float8 * interval '1 ms' AS until, s.taken, s.cost::bigint AS cost, s.paid
      FROM b, (SELECT pg_catalog.count(*) AS taken, pg_catalog.sum(next.cost) AS cost, pg_catalog.count(*) FILTER (WHERE next.cost > 0) AS paid FROM next) AS s
     WHERE s.taken > 0 AND (s.cost <= b.balance::numeric OR s.cost = 0::numeric OR b.negative AND b.balance::numeric - s.cost >= -9223372036854775807::numeric)
), taken AS (
    UPDATE {schema}.item i
       SET state = 'running', charged = i.cost, holder = :holder, epoch = i.epoch + 1, quiet = :quiet = 1, until = f.until, taken_at = f.now, due_at = NULL, updated_at = f.now
      FROM first f, next
     WHERE i.shard = ANY (ARRAY[next.shard]) AND i.workspace = next.workspace AND i.batch = next.id AND i.key = next.key
    RETURNING i.n, i.key, i.cost, i.epoch, i.input, i.failures, i.deaths
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT :shard, :workspace, f.wallet, f.rows + pg_catalog.row_number() OVER a, -taken.cost, f.balance - (pg_catalog.sum(taken.cost) OVER a)::bigint, 'charge',
           '$batch/' || :batch || '/charge/' || taken.key, f.now
      FROM first f, taken
     WHERE taken.cost > 0
    WINDOW a AS (ORDER BY taken.n)
), charged_wallet AS (
    UPDATE {schema}.wallet w
       SET balance = f.balance - f.cost, version = f.rows + f.paid, updated_at = f.now
      FROM first f
     WHERE w.shard = ANY (ARRAY[f.shard]) AND w.workspace = f.workspace AND w.id = f.wallet AND f.paid > 0
), moved AS (
    UPDATE {schema}.batch c
       SET status = 'RUNNING', next = c.next + f.taken, running = c.running + f.taken, charged = c.charged + f.cost, version = c.version + 1,
           served_at = f.now, updated_at = f.now
      FROM first f
     WHERE c.shard = ANY (ARRAY[f.shard]) AND c.workspace = f.workspace AND c.id = f.id
    RETURNING c.version
), {include history/write_without_cause}
    SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, moved.version, 'itemsTaken',
           pg_catalog.json_build_object('keys', (SELECT pg_catalog.json_agg(taken.key ORDER BY taken.n) FROM taken), 'charged', f.cost), f.now
      FROM first f, moved
)
SELECT (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(taken.key, taken.epoch, taken.input, taken.failures, taken.deaths) ORDER BY taken.n)::text FROM taken),
       f.until, f.timeout, f.artifacts, false
  FROM first f
