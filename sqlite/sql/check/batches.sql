-- Checks one page of batches. Returns those whose counts differ from their items, whose charges,
-- returns and refunds differ from their wallet's ledger, item by item, or whose status should be
-- final and is not; and the last batch of the page. Of a batch whose items were deleted, the sums are compared. Items, ledger rows and histories are looked
-- up batch by batch, as in check.runs.
WITH page AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.id, x.status, x.items, x.next, x.waiting, x.running, x.succeeded, x.accepted, x.failed, x.cancelled, x.dirty,
           x.charged, x.refunded, x.version, x.wallet, x.pruned_at
      FROM holdfast_batch AS x
     WHERE (x.shard, x.workspace, x.id) > (:shard, :workspace, :batch)
     ORDER BY x.shard, x.workspace, x.id
     LIMIT :limit
), parts AS MATERIALIZED (
    SELECT i.shard, i.workspace, i.batch, count(*) AS items, max(i.n) AS last, count(*) FILTER (WHERE i.state = 'pending') AS pending,
           coalesce(min(i.n) FILTER (WHERE i.state = 'pending'), max(i.n) + 1) AS first, count(*) FILTER (WHERE i.state = 'waiting') AS waiting,
           count(*) FILTER (WHERE i.state = 'running') AS running, count(*) FILTER (WHERE i.state = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE i.state = 'failed') AS failed, count(*) FILTER (WHERE i.state = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE i.decision = 'accepted') AS accepted, count(*) FILTER (WHERE i.dirty) AS dirty, sum(i.charged) AS charged,
           coalesce(sum(i.charged) FILTER (WHERE i.state IN ('failed', 'cancelled')), 0) AS refunded
      FROM page AS p CROSS JOIN holdfast_item AS i
     WHERE i.shard = p.shard AND i.workspace = p.workspace AND i.batch = p.id
     GROUP BY i.shard, i.workspace, i.batch
), wanted AS (
    SELECT i.shard, i.workspace, i.batch, i.key, k.kind,
           CASE WHEN k.kind = 'charge' THEN -i.charged WHEN k.kind = 'return' AND i.state = 'failed' OR k.kind = 'refund' AND i.state = 'cancelled' THEN i.charged
                ELSE 0 END AS wanted, 0 AS has
      FROM page AS p CROSS JOIN holdfast_item AS i CROSS JOIN (SELECT 'charge' AS kind UNION ALL SELECT 'return' UNION ALL SELECT 'refund') AS k
     WHERE i.shard = p.shard AND i.workspace = p.workspace AND i.batch = p.id AND i.charged > 0
), had AS (
    SELECT l.shard, l.workspace, l.batch, substr(l.rest, instr(l.rest, '/') + 1) AS key, substr(l.rest, 1, instr(l.rest, '/') - 1) AS kind, 0 AS wanted,
           l.delta AS has
      FROM (SELECT l.shard, l.workspace, l.delta, substr(l.reference, 8, instr(substr(l.reference, 8), '/') - 1) AS batch,
                   substr(l.reference, 8 + instr(substr(l.reference, 8), '/')) AS rest
              FROM page AS p CROSS JOIN holdfast_ledger AS l
             WHERE l.shard = p.shard AND l.workspace = p.workspace AND l.wallet = p.wallet
               AND l.reference >= '$batch/' || p.id || '/' AND l.reference < '$batch/' || p.id || '0') AS l
), money AS MATERIALIZED (
    SELECT DISTINCT e.shard, e.workspace, e.batch
      FROM (SELECT b.shard, b.workspace, b.batch, b.key, b.kind, sum(b.wanted) AS wanted, sum(b.has) AS has
              FROM (SELECT * FROM wanted
                    UNION ALL
                    SELECT * FROM had) AS b
             GROUP BY b.shard, b.workspace, b.batch, b.key, b.kind) AS e
     WHERE e.wanted <> e.has
), sums AS MATERIALIZED (
    SELECT h.shard, h.workspace, h.batch, sum(-h.has) FILTER (WHERE h.kind = 'charge') AS charged, sum(h.has) FILTER (WHERE h.kind <> 'charge') AS refunded
      FROM had AS h
     GROUP BY h.shard, h.workspace, h.batch
), heads AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.id, count(*) AS events, max(h.version) AS last, min(h.version) AS low
      FROM page AS p CROSS JOIN holdfast_history AS h
     WHERE h.shard = p.shard AND h.workspace = p.workspace AND h.stream = '$batch/' || p.id
     GROUP BY p.shard, p.workspace, p.id
)
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.id, '', j.version, j.events, j.last, j.low, j.wrong
  FROM (SELECT row_number() OVER (ORDER BY p.shard, p.workspace, p.id) AS nth, count(*) OVER () AS size, p.shard, p.workspace, p.id, p.version,
               coalesce(h.events, 0) AS events, coalesce(h.last, -1) AS last, coalesce(h.low, 0) AS low,
               CASE WHEN coalesce(h.last, -1) <> p.version OR coalesce(h.events, 0) <> p.version - coalesce(h.low, 0) + 1 THEN 'versions'
                    WHEN p.pruned_at IS NULL AND (p.items <> coalesce(c.items, 0) OR p.items <> coalesce(c.last, 0) OR p.next <> coalesce(c.items - c.pending, 0) OR c.first <> p.next + 1
                         OR p.waiting <> coalesce(c.waiting, 0) OR p.running <> coalesce(c.running, 0) OR p.succeeded <> coalesce(c.succeeded, 0)
                         OR p.failed <> coalesce(c.failed, 0) OR p.cancelled <> coalesce(c.cancelled, 0) OR p.dirty <> coalesce(c.dirty, 0)
                         OR p.accepted <> CASE WHEN p.status = 'COMPLETED' THEN p.succeeded ELSE coalesce(c.accepted, 0) END) THEN 'counts'
                    WHEN p.pruned_at IS NULL AND (p.charged <> coalesce(c.charged, 0) OR p.refunded <> coalesce(c.refunded, 0) OR m.batch IS NOT NULL)
                         OR p.pruned_at IS NOT NULL AND (p.charged <> coalesce(s.charged, 0) OR p.refunded <> coalesce(s.refunded, 0)) THEN 'money'
                    WHEN p.status IN ('CANCELLED', 'COMPLETED') AND (p.waiting + p.running + p.dirty > 0 OR p.succeeded <> p.accepted)
                         OR p.status = 'COMPLETED' AND p.next < p.items THEN 'end'
                    ELSE '' END AS wrong
          FROM page AS p
          LEFT JOIN parts AS c ON c.shard = p.shard AND c.workspace = p.workspace AND c.batch = p.id
          LEFT JOIN money AS m ON m.shard = p.shard AND m.workspace = p.workspace AND m.batch = p.id
          LEFT JOIN sums AS s ON s.shard = p.shard AND s.workspace = p.workspace AND s.batch = p.id
          LEFT JOIN heads AS h ON h.shard = p.shard AND h.workspace = p.workspace AND h.id = p.id) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
