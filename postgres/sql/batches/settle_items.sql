-- Stores the outputs of items and ends their leases: of a member's items all or none. Otherwise the caller settles them
-- one by one (batches.settle), which returns the reason. A batch is changed once for all items. Locks batches, then items
-- in the order of their keys, and reads the time afterwards: a holder that waited past its expiry has lost the lease. An
-- item that two members have belongs to the first. A group waits for a batch that a take has locked, as batches.settle does.
WITH {members}, x AS MATERIALIZED (
    SELECT DISTINCT ON (m.shard, m.workspace, m.batch, c.key) m.member, m.shard, m.workspace, m.batch, m.command, m.size, c.key, c.epoch, c.output
      FROM m JOIN {children} ON c.owner = m.member
     ORDER BY m.shard, m.workspace, m.batch, c.key, m.member
), b AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.id, b.items, b.next, b.waiting, b.running, b.succeeded, b.dirty, b.sealed, b.cancel_requested, b.version, b.due_at
      FROM (SELECT DISTINCT m.shard, m.workspace, m.batch FROM m) AS k
      JOIN {schema}.batch b ON b.shard = ANY (ARRAY[k.shard]) AND b.workspace = k.workspace AND b.id = k.batch
     ORDER BY k.shard, b.workspace, b.id
       FOR UPDATE OF b
), cur AS MATERIALIZED (
    SELECT x.member, x.shard, x.workspace, x.batch, x.command, x.size, x.key, x.output, i.state = 'running' AND i.epoch = x.epoch AS held, i.until
      FROM b JOIN x ON x.shard = b.shard AND x.workspace = b.workspace AND x.batch = b.id
     CROSS JOIN LATERAL (
           SELECT i.state, i.epoch, i.until FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = x.key
              FOR UPDATE) AS i
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), won AS MATERIALIZED (
    SELECT cur.member FROM t, cur WHERE cur.held AND cur.until > t.now
     GROUP BY cur.member, cur.size HAVING pg_catalog.count(*) = cur.size
), ended AS (
    UPDATE {schema}.item i
       SET state = 'succeeded', output = cur.output::json, quiet = false, lost = 0, error = NULL, due_at = NULL, holder = NULL, until = NULL, updated_at = t.now
      FROM t, cur JOIN won ON won.member = cur.member
     WHERE i.shard = ANY (ARRAY[cur.shard]) AND i.workspace = cur.workspace AND i.batch = cur.batch AND i.key = cur.key
    RETURNING cur.member, cur.shard, cur.workspace, cur.batch, cur.command, i.n, i.key, i.failures, i.deaths
), sums AS MATERIALIZED (
    SELECT e.shard, e.workspace, e.batch, pg_catalog.count(*) AS ended FROM ended e GROUP BY e.shard, e.workspace, e.batch
), moved AS (
    UPDATE {schema}.batch c
       SET running = b.running - sums.ended, succeeded = b.succeeded + sums.ended, version = b.version + sums.ended, updated_at = t.now,
           due_at = CASE WHEN b.sealed AND NOT b.cancel_requested AND b.next = b.items AND b.waiting = 0 AND b.running = sums.ended AND b.dirty = 0
                         THEN t.now ELSE b.due_at END
      FROM t, b JOIN sums ON sums.shard = b.shard AND sums.workspace = b.workspace AND sums.batch = b.id
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.shard = ANY (ARRAY[sums.shard]) AND c.workspace = b.workspace AND c.id = b.id
    RETURNING c.shard, c.workspace, c.id, b.version, coalesce(c.due_at = t.now, false) AS over, c.updated_at,
              pg_catalog.json_build_object('pending', c.items - c.next + c.waiting, 'running', c.running, 'succeeded', c.succeeded,
                                           'failed', c.failed, 'cancelled', c.cancelled, 'accepted', c.accepted) AS counts
), {include history/write_without_cause}
    SELECT e.shard, e.command, e.nth - 1, e.workspace, '$batch/' || e.batch, moved.version + e.at, 'itemSucceeded',
           pg_catalog.json_build_object('key', e.key, 'state', 'succeeded', 'failures', e.failures, 'deaths', e.deaths, 'lost', 0, 'over', moved.over, 'counts', moved.counts),
           moved.updated_at
      FROM (SELECT ended.*, pg_catalog.row_number() OVER (PARTITION BY ended.shard, ended.workspace, ended.batch, ended.member ORDER BY ended.n) AS nth,
                   pg_catalog.row_number() OVER (PARTITION BY ended.shard, ended.workspace, ended.batch ORDER BY ended.member, ended.n) AS at
              FROM ended) AS e
      JOIN moved ON moved.shard = e.shard AND moved.workspace = e.workspace AND moved.id = e.batch
    {due_notices}
SELECT m.member, CASE WHEN won.member IS NOT NULL THEN 1 ELSE 0 END, coalesce(moved.over, false)
  FROM m LEFT JOIN won ON won.member = m.member
  LEFT JOIN moved ON won.member IS NOT NULL AND moved.shard = m.shard AND moved.workspace = m.workspace AND moved.id = m.batch
