-- Judges batches, a page at a time: answers those whose counts are not those of their
-- items, whose charges, returns and refunds are not those in the ledger, one for each
-- item, or that are at their end and are not; and the last of the page.
-- after: $1 shard, $2 workspace, $3 batch; $4 page
WITH page AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.id, x.wallet, x.status, x.items, x.next, x.waiting, x.running, x.succeeded, x.accepted, x.failed, x.cancelled, x.dirty,
           x.charged, x.refunded, x.version
      FROM {schema}.batch x
     WHERE (x.shard, x.workspace, x.id) > ($1::smallint, $2::text, $3::text)
     ORDER BY x.shard, x.workspace, x.id
     LIMIT $4
), parts AS (
    SELECT p.shard, p.workspace, p.id, count(*) AS items, max(i.n) AS last, count(*) FILTER (WHERE i.n <= p.next AND i.state = 'pending') AS asleep,
           count(*) FILTER (WHERE i.state <> 'pending') AS next, count(*) FILTER (WHERE i.state = 'waiting') AS waiting,
           count(*) FILTER (WHERE i.state = 'running') AS running, count(*) FILTER (WHERE i.state = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE i.state = 'failed') AS failed, count(*) FILTER (WHERE i.state = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE i.decision = 'accepted' OR i.state = 'succeeded' AND p.status = 'COMPLETED') AS accepted,
           count(*) FILTER (WHERE i.dirty) AS dirty, sum(i.charged)::bigint AS charged,
           coalesce(sum(i.charged) FILTER (WHERE i.state IN ('failed', 'cancelled')), 0) AS refunded,
           count(*) FILTER (WHERE (i.charged > 0) <> EXISTS (
               SELECT 1 FROM {schema}.ledger l WHERE l.shard = p.shard AND l.workspace = p.workspace AND l.wallet = p.wallet
                                                 AND l.reference = '$batch/' || p.id || '/charge/' || i.key AND l.delta = -i.charged)) AS uncharged,
           count(*) FILTER (WHERE (i.charged > 0 AND i.state = 'failed') <> EXISTS (
               SELECT 1 FROM {schema}.ledger l WHERE l.shard = p.shard AND l.workspace = p.workspace AND l.wallet = p.wallet
                                                 AND l.reference = '$batch/' || p.id || '/return/' || i.key AND l.delta = i.charged)) AS unreturned,
           count(*) FILTER (WHERE (i.charged > 0 AND i.state = 'cancelled') <> EXISTS (
               SELECT 1 FROM {schema}.ledger l WHERE l.shard = p.shard AND l.workspace = p.workspace AND l.wallet = p.wallet
                                                 AND l.reference = '$batch/' || p.id || '/refund/' || i.key AND l.delta = i.charged)) AS unrefunded
      FROM page p JOIN {schema}.item i ON i.shard = p.shard AND i.workspace = p.workspace AND i.batch = p.id
     GROUP BY p.shard, p.workspace, p.id
), heads AS (
    SELECT p.shard, p.workspace, p.id, count(*) AS events, max(h.version) AS last, min(h.version) AS low
      FROM page p JOIN {schema}.history h ON h.shard = p.shard AND h.workspace = p.workspace AND h.stream = '$batch/' || p.id
     GROUP BY p.shard, p.workspace, p.id
)
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.id, '', j.version, j.events, j.last, j.low, j.wrong
  FROM (SELECT row_number() OVER (ORDER BY p.shard, p.workspace, p.id) AS nth, count(*) OVER () AS size, p.shard, p.workspace, p.id, p.version,
               coalesce(h.events, 0) AS events, coalesce(h.last, -1) AS last, coalesce(h.low, 0) AS low,
               CASE WHEN coalesce(h.last, -1) <> p.version OR coalesce(h.events, 0) <> p.version - coalesce(h.low, 0) + 1 THEN 'versions'
                    WHEN p.items <> coalesce(c.items, 0) OR p.items <> coalesce(c.last, 0) OR p.next <> coalesce(c.next, 0) OR c.asleep > 0
                         OR p.waiting <> coalesce(c.waiting, 0) OR p.running <> coalesce(c.running, 0) OR p.succeeded <> coalesce(c.succeeded, 0)
                         OR p.failed <> coalesce(c.failed, 0) OR p.cancelled <> coalesce(c.cancelled, 0) OR p.accepted <> coalesce(c.accepted, 0)
                         OR p.dirty <> coalesce(c.dirty, 0) THEN 'counts'
                    WHEN p.charged <> coalesce(c.charged, 0) OR p.refunded <> coalesce(c.refunded, 0) OR c.uncharged > 0 OR c.unreturned > 0
                         OR c.unrefunded > 0 THEN 'money'
                    WHEN p.status IN ('CANCELLED', 'COMPLETED') AND (p.waiting + p.running + p.dirty > 0 OR p.succeeded <> p.accepted)
                         OR p.status = 'COMPLETED' AND p.next < p.items THEN 'end'
                    ELSE '' END AS wrong
          FROM page p
          LEFT JOIN parts c ON c.shard = p.shard AND c.workspace = p.workspace AND c.id = p.id
          LEFT JOIN heads h ON h.shard = p.shard AND h.workspace = p.workspace AND h.id = p.id) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
