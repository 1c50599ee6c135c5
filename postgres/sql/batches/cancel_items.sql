-- Tears down a batch that is being cancelled: marks one page of taken, undecided items as
-- cancelled, ends their leases and refunds exactly what they cost. Locks wallet, batch and
-- items, in this order. If the wallet is missing or the refund would overflow it, no page
-- with charged items is cancelled.
WITH {members}, w AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.batch, m.after, m.room, w.id AS wallet, w.balance, w.version AS rows
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
      LEFT JOIN LATERAL (
           SELECT w.id, w.balance, w.version FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w ON true
), b AS MATERIALIZED (
    SELECT w.member, w.shard, w.workspace, w.batch, w.after, w.room, w.wallet, w.balance, w.rows, b.status, b.next, b.waiting, b.running,
           b.succeeded, b.accepted, b.cancelled, b.dirty, b.refunded, b.version
      FROM w CROSS JOIN LATERAL (
           SELECT b.status, b.next, b.waiting, b.running, b.succeeded, b.accepted, b.cancelled, b.dirty, b.refunded, b.version, b.cancel_requested
             FROM {schema}.batch b
            WHERE b.shard = w.shard AND b.workspace = w.workspace AND b.id = w.batch
              FOR UPDATE) AS b
     WHERE b.cancel_requested AND b.status || '' NOT IN ('CANCELLED', 'COMPLETED') -- || '' makes the planner use the key, not the index of live batches
), t AS MATERIALIZED (
    SELECT {now} AS now FROM b
), page AS MATERIALIZED (
    SELECT i.key, i.n, i.charged, i.state
      FROM b CROSS JOIN LATERAL (
           SELECT i.key, i.n, i.charged, i.state FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.shard + 0 = b.shard + 0 AND i.workspace || '/' || i.batch = b.workspace || '/' || b.batch AND i.n > b.after AND i.n <= b.next
              AND i.state IN ('waiting', 'running', 'succeeded') AND i.decision IS NULL
            ORDER BY i.n
            LIMIT b.room
              FOR UPDATE) AS i
), sums AS MATERIALIZED (
    SELECT b.member, coalesce(p.items, 0) AS items, coalesce(p.paid, 0) AS paid, coalesce(p.cost, 0) AS cost, coalesce(p.waiting, 0) AS waiting,
           coalesce(p.running, 0) AS running, coalesce(p.succeeded, 0) AS succeeded,
           coalesce(p.cost, 0) = 0 OR b.wallet IS NOT NULL AND b.balance <= 9223372036854775807 - p.cost AS fits,
           coalesce(p.items, 0) > 0 OR b.status <> 'CANCELLING' AS news
      FROM b, (SELECT pg_catalog.count(*) AS items, pg_catalog.count(*) FILTER (WHERE page.charged > 0) AS paid, pg_catalog.sum(page.charged)::bigint AS cost,
                      pg_catalog.count(*) FILTER (WHERE page.state = 'waiting') AS waiting, pg_catalog.count(*) FILTER (WHERE page.state = 'running') AS running,
                      pg_catalog.count(*) FILTER (WHERE page.state = 'succeeded') AS succeeded
                 FROM page) AS p
), chosen AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.batch, page.key, t.now FROM t, b, sums, page WHERE sums.fits
), cancelled_items AS (
    UPDATE {schema}.item i
       SET state = 'cancelled', decision = 'cancelled', epoch = i.epoch + CASE WHEN i.holder IS NULL THEN 0 ELSE 1 END, late = i.until,
           holder = NULL, until = NULL, due_at = NULL, dirty = true, sweep_at = c.now, updated_at = c.now
      FROM chosen c
     WHERE i.shard = ANY (ARRAY[c.shard]) AND i.workspace = c.workspace AND i.batch = c.batch AND i.key = c.key
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT b.shard, b.workspace, b.wallet, b.rows + pg_catalog.row_number() OVER (ORDER BY page.n), page.charged,
           (b.balance::numeric + pg_catalog.sum(page.charged) OVER (ORDER BY page.n))::bigint, 'refund', '$batch/' || b.batch || '/refund/' || page.key, t.now
      FROM t, b, sums, page
     WHERE sums.fits AND page.charged > 0
), refunded_wallet AS (
    UPDATE {schema}.wallet w
       SET balance = b.balance + sums.cost, version = b.rows + sums.paid, updated_at = t.now
      FROM t, b, sums
     WHERE w.shard = ANY (ARRAY[b.shard]) AND w.workspace = b.workspace AND w.id = b.wallet AND sums.fits AND sums.paid > 0
), moved AS (
    UPDATE {schema}.batch c
       SET status = 'CANCELLING', waiting = b.waiting - sums.waiting, running = b.running - sums.running, succeeded = b.succeeded - sums.succeeded,
           cancelled = b.cancelled + sums.items, dirty = b.dirty + sums.items, refunded = b.refunded + sums.cost, need = 0,
           version = b.version + 1, updated_at = t.now
      FROM t, b, sums
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.batch AND sums.fits AND sums.news
    RETURNING b.member, c.version, c.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'itemsCancelled',
           pg_catalog.json_build_object('flipped', sums.items, 'refunded', sums.cost), moved.updated_at
      FROM sums, m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END,
       CASE WHEN b.member IS NULL THEN 'none' WHEN sums.fits THEN 'fine' WHEN b.wallet IS NULL THEN 'missing' ELSE 'full' END,
       coalesce(sums.items, 0), coalesce(sums.cost, 0), coalesce((SELECT pg_catalog.max(page.n) FROM page), m.after),
       coalesce(b.waiting - sums.waiting + b.running - sums.running + b.succeeded - sums.succeeded - b.accepted, 0)
  FROM m LEFT JOIN b ON b.member = m.member
  LEFT JOIN sums ON sums.member = m.member
  LEFT JOIN moved ON moved.member = m.member
