-- Checks one page of batches. Returns those whose counts differ from their items, whose charges,
-- returns and refunds differ from their wallet's ledger, item by item, or whose status should be
-- final and is not; and the last batch of the page. Of a batch whose items were deleted, the sums are compared. Items, ledger rows and histories are read
-- batch by batch: a join that the planner takes for a small one would read all of them for each
-- batch.
WITH page AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.id, x.status, x.items, x.next, x.waiting, x.running, x.succeeded, x.accepted, x.failed, x.cancelled, x.dirty,
           x.charged, x.refunded, x.version, x.wallet, x.pruned_at
      FROM {schema}.batch x
     WHERE (x.shard, x.workspace, x.id) > (:shard, :workspace, :batch)
     ORDER BY x.shard, x.workspace, x.id
     LIMIT :limit
)
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.id, '', j.version, j.events, j.last, j.low, j.wrong
  FROM (SELECT pg_catalog.row_number() OVER (ORDER BY p.shard, p.workspace, p.id) AS nth, pg_catalog.count(*) OVER () AS size, p.shard, p.workspace, p.id, p.version,
               h.events AS events, coalesce(h.last, -1) AS last, coalesce(h.low, 0) AS low,
               CASE WHEN coalesce(h.last, -1) <> p.version OR h.events <> p.version - coalesce(h.low, 0) + 1 THEN 'versions'
                    WHEN p.pruned_at IS NULL AND (p.items <> coalesce(c.items, 0) OR p.items <> coalesce(c.last, 0) OR p.next <> coalesce(c.items - c.pending, 0) OR c.first <> p.next + 1
                         OR p.waiting <> coalesce(c.waiting, 0) OR p.running <> coalesce(c.running, 0) OR p.succeeded <> coalesce(c.succeeded, 0)
                         OR p.failed <> coalesce(c.failed, 0) OR p.cancelled <> coalesce(c.cancelled, 0) OR p.dirty <> coalesce(c.dirty, 0)
                         OR p.accepted <> CASE WHEN p.status = 'COMPLETED' THEN p.succeeded ELSE coalesce(c.accepted, 0) END) THEN 'counts'
                    WHEN p.pruned_at IS NULL AND (p.charged::numeric <> coalesce(c.charged, 0) OR p.refunded::numeric <> coalesce(c.refunded, 0)) OR m.wrong THEN 'money'
                    WHEN p.status IN ('CANCELLED', 'COMPLETED') AND (p.waiting + p.running + p.dirty > 0 OR p.succeeded <> p.accepted)
                         OR p.status = 'COMPLETED' AND p.next < p.items THEN 'end'
                    ELSE '' END AS wrong
          FROM page p
         CROSS JOIN LATERAL (
               SELECT pg_catalog.count(*) AS items, pg_catalog.max(i.n) AS last, pg_catalog.count(*) FILTER (WHERE i.state = 'pending') AS pending,
                      coalesce(pg_catalog.min(i.n) FILTER (WHERE i.state = 'pending'), pg_catalog.max(i.n) + 1) AS first, pg_catalog.count(*) FILTER (WHERE i.state = 'waiting') AS waiting,
                      pg_catalog.count(*) FILTER (WHERE i.state = 'running') AS running, pg_catalog.count(*) FILTER (WHERE i.state = 'succeeded') AS succeeded,
                      pg_catalog.count(*) FILTER (WHERE i.state = 'failed') AS failed, pg_catalog.count(*) FILTER (WHERE i.state = 'cancelled') AS cancelled,
                      pg_catalog.count(*) FILTER (WHERE i.decision = 'accepted') AS accepted, pg_catalog.count(*) FILTER (WHERE i.dirty) AS dirty, pg_catalog.sum(i.charged) AS charged,
                      coalesce(pg_catalog.sum(i.charged) FILTER (WHERE i.state IN ('failed', 'cancelled')), 0) AS refunded
                 FROM {schema}.item i
                WHERE i.shard = p.shard AND i.workspace = p.workspace AND i.batch = p.id) AS c
         CROSS JOIN LATERAL (
               SELECT CASE WHEN p.pruned_at IS NULL THEN EXISTS (
                      SELECT 1
                        FROM (SELECT i.key, k.kind,
                                     CASE WHEN k.kind = 'charge' THEN -i.charged
                                          WHEN k.kind = 'return' AND i.state = 'failed' OR k.kind = 'refund' AND i.state = 'cancelled' THEN i.charged
                                          ELSE 0 END AS wanted, 0 AS has
                                FROM {schema}.item i, (SELECT 'charge' AS kind UNION ALL SELECT 'return' UNION ALL SELECT 'refund') AS k
                               WHERE i.shard = p.shard AND i.workspace = p.workspace AND i.batch = p.id AND i.charged > 0
                               UNION ALL
                              SELECT pg_catalog.substr(l.reference, pg_catalog.length('$batch/' || p.id || '/' || pg_catalog.split_part(l.reference, '/', 3)) + 2), pg_catalog.split_part(l.reference, '/', 3), 0, l.delta
                                FROM (SELECT l.reference, l.delta FROM {schema}.ledger l
                                       WHERE l.shard + 0 = p.shard AND l.workspace = p.workspace AND l.wallet = p.wallet
                                         AND l.reference >= '$batch/' || p.id || '/' AND l.reference < '$batch/' || p.id || '0'
                                       ORDER BY l.reference) AS l) AS e
                       GROUP BY e.key, e.kind
                      HAVING pg_catalog.sum(e.wanted) <> pg_catalog.sum(e.has))
                      ELSE (SELECT p.charged::numeric <> coalesce(pg_catalog.sum(-l.delta) FILTER (WHERE pg_catalog.split_part(l.reference, '/', 3) = 'charge'), 0)
                                OR p.refunded::numeric <> coalesce(pg_catalog.sum(l.delta) FILTER (WHERE pg_catalog.split_part(l.reference, '/', 3) <> 'charge'), 0)
                              FROM (SELECT l.reference, l.delta FROM {schema}.ledger l
                                     WHERE l.shard + 0 = p.shard AND l.workspace = p.workspace AND l.wallet = p.wallet
                                       AND l.reference >= '$batch/' || p.id || '/' AND l.reference < '$batch/' || p.id || '0'
                                     ORDER BY l.reference) AS l)
                      END AS wrong) AS m
         CROSS JOIN LATERAL (
               SELECT pg_catalog.count(*) AS events, pg_catalog.max(e.version) AS last, pg_catalog.min(e.version) AS low
                 FROM (SELECT h.version FROM {schema}.history h
                        WHERE h.shard = p.shard AND h.workspace = p.workspace AND h.stream = '$batch/' || p.id
                        ORDER BY h.version) AS e) AS h) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
