-- Gives up an item and refunds what it cost; the item is then cleaned up. Locks wallet,
-- batch and item, in this order. If the wallet is missing or the refund would overflow it,
-- a charged item is not given up.
WITH {members}, w AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.batch, m.key, m.how, m.epoch, m.error, w.id AS wallet, w.balance, w.version AS rows
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
      LEFT JOIN LATERAL (
           SELECT w.id, w.balance, w.version FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w ON true
), b AS MATERIALIZED (
    SELECT w.member, w.shard, w.workspace, w.batch, w.key, w.how, w.epoch, w.error, w.wallet, w.balance, w.rows, b.version, b.running, b.failed, b.dirty, b.refunded
      FROM w CROSS JOIN LATERAL (
           SELECT b.version, b.running, b.failed, b.dirty, b.refunded
             FROM {schema}.batch b
            WHERE b.shard = w.shard AND b.workspace = w.workspace AND b.id = w.batch
              FOR UPDATE) AS b
), cur AS MATERIALIZED (
    SELECT b.member, b.shard, b.workspace, b.batch, b.key, b.how, b.epoch AS wanted, b.error AS says, b.wallet, b.balance, b.rows, b.version,
           b.running, b.failed, b.dirty, b.refunded, i.state, i.epoch, i.until, i.charged, i.failures, i.deaths, i.holder
      FROM b CROSS JOIN LATERAL (
           SELECT i.state, i.epoch, i.until, i.charged, i.failures, i.deaths, i.holder FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.batch AND i.key = b.key
              FOR UPDATE) AS i
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), ok AS MATERIALIZED (
    SELECT cur.*, cur.charged = 0 OR cur.wallet IS NOT NULL AND cur.balance <= 9223372036854775807 - cur.charged AS fits
      FROM t, cur
     WHERE cur.state = 'running' AND cur.epoch = cur.wanted AND (cur.until <= t.now) = (cur.how = 'died')
), ended AS (
    UPDATE {schema}.item i
       SET state = 'failed', failures = ok.failures + CASE WHEN ok.how = 'fail' THEN 1 ELSE 0 END,
           deaths = ok.deaths + CASE WHEN ok.how = 'died' THEN 1 ELSE 0 END,
           error = CASE WHEN ok.how = 'died' THEN 'the lease of holder ' || ok.holder || ' expired' ELSE ok.says END,
           holder = NULL, until = NULL, dirty = true, sweep_at = t.now, updated_at = t.now
      FROM t, ok
     WHERE i.shard = ANY (ARRAY[ok.shard]) AND i.workspace = ok.workspace AND i.batch = ok.batch AND i.key = ok.key AND ok.fits
    RETURNING ok.member, i.failures, i.deaths
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT ok.shard, ok.workspace, ok.wallet, ok.rows + 1, ok.charged, ok.balance + ok.charged, 'return', '$batch/' || ok.batch || '/return/' || ok.key, t.now
      FROM t, ok
     WHERE ok.fits AND ok.charged > 0
), refunded_wallet AS (
    UPDATE {schema}.wallet w
       SET balance = ok.balance + ok.charged, version = ok.rows + 1, updated_at = t.now
      FROM t, ok
     WHERE w.shard = ANY (ARRAY[ok.shard]) AND w.workspace = ok.workspace AND w.id = ok.wallet AND ok.fits AND ok.charged > 0
), moved AS (
    UPDATE {schema}.batch c
       SET running = ok.running - 1, failed = ok.failed + 1, dirty = ok.dirty + 1, refunded = ok.refunded + ok.charged, version = ok.version + 1,
           updated_at = t.now
      FROM t, ok
     WHERE c.shard = ANY (ARRAY[ok.shard]) AND c.workspace = ok.workspace AND c.id = ok.batch AND ok.fits
    RETURNING ok.member, c.version, c.updated_at, c.items - c.next + c.waiting AS pending, c.running, c.succeeded, c.failed, c.cancelled, c.accepted
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'itemGivenUp',
           pg_catalog.json_build_object('key', m.key, 'returned', ok.charged, 'failures', ended.failures, 'deaths', ended.deaths,
                             'counts', pg_catalog.json_build_object('pending', moved.pending, 'running', moved.running, 'succeeded', moved.succeeded,
                                                         'failed', moved.failed, 'cancelled', moved.cancelled, 'accepted', moved.accepted)),
           moved.updated_at
      FROM m JOIN ok ON ok.member = m.member JOIN ended ON ended.member = m.member JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END,
       CASE WHEN moved.member IS NOT NULL THEN 'failed' ELSE coalesce(cur.state, '') END, coalesce(cur.epoch, 0),
       coalesce(ended.failures, cur.failures, 0), coalesce(ended.deaths, cur.deaths, 0), coalesce(NOT ok.fits, false), coalesce(cur.wallet IS NULL, false)
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN ok ON ok.member = m.member
  LEFT JOIN ended ON ended.member = m.member
  LEFT JOIN moved ON moved.member = m.member
