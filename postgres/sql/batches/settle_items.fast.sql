-- Stores the outputs of items of one batch, as batches.settle_items, all or none; if it cannot, it does nothing and returns
-- nothing. The caller has the items in the order of their keys, in which they are locked.
WITH b AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.id, b.items, b.next, b.waiting, b.running, b.succeeded, b.dirty, b.sealed, b.cancel_requested, b.version, b.due_at
      FROM {schema}.batch b
     WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND {include registry/is_current}
       FOR UPDATE
), cur AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.id, c.key, c.output, i.state = 'running' AND i.epoch = c.epoch AS held, i.until
      FROM b, {children}
     CROSS JOIN LATERAL (
           SELECT i.state, i.epoch, i.until FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = c.key
              FOR UPDATE) AS i
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), ok AS MATERIALIZED (
    SELECT t.now FROM t, cur WHERE cur.held AND cur.until > t.now GROUP BY t.now HAVING pg_catalog.count(DISTINCT cur.key) = :size
), ended AS (
    UPDATE {schema}.item i
       SET state = 'succeeded', output = cur.output::json, quiet = false, lost = 0, error = NULL, due_at = NULL, holder = NULL, until = NULL, updated_at = ok.now
      FROM ok, cur
     WHERE i.shard = ANY (ARRAY[cur.shard]) AND i.workspace = cur.workspace AND i.batch = cur.id AND i.key = cur.key
    RETURNING i.n, i.key, i.failures, i.deaths
), moved AS (
    UPDATE {schema}.batch c
       SET running = b.running - sums.ended, succeeded = b.succeeded + sums.ended, version = b.version + sums.ended, updated_at = ok.now,
           due_at = CASE WHEN b.sealed AND NOT b.cancel_requested AND b.next = b.items AND b.waiting = 0 AND b.running = sums.ended AND b.dirty = 0
                         THEN ok.now ELSE b.due_at END
      FROM ok, b, (SELECT pg_catalog.count(*) AS ended FROM ended) AS sums
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.id
    RETURNING b.version, coalesce(c.due_at = ok.now, false) AS over, ok.now,
              pg_catalog.json_build_object('pending', c.items - c.next + c.waiting, 'running', c.running, 'succeeded', c.succeeded,
                                           'failed', c.failed, 'cancelled', c.cancelled, 'accepted', c.accepted) AS counts
), {include history/write_without_cause}
    SELECT :shard, :command, e.nth - 1, :workspace, '$batch/' || :batch, moved.version + e.nth, 'itemSucceeded',
           pg_catalog.json_build_object('key', e.key, 'state', 'succeeded', 'failures', e.failures, 'deaths', e.deaths, 'lost', 0, 'over', moved.over, 'counts', moved.counts),
           moved.now
      FROM moved, (SELECT ended.*, pg_catalog.row_number() OVER (ORDER BY ended.n) AS nth FROM ended) AS e
)
SELECT moved.over FROM moved
