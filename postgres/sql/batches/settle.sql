-- Ends leases of items. 'done' stores the output; 'fail' counts a failure; 'died' counts a
-- crash of the holder of an expired lease, or a lost hand-out if the holder never reported;
-- 'release' counts nothing. After all but 'done' the item waits to be taken again. The last
-- allowed failure or crash is not counted here: batches.give_up_item gives that item up and
-- refunds it. Lost hand-outs have no limit. Locks batches, then items, and reads the time
-- afterwards: a holder that waited past its expiry has lost the lease. The UPDATE names the
-- rows only by key: further conditions would be evaluated on the rows as they were when the
-- statement began. A group waits for a batch that a take has locked: skipping it would make
-- each member of the group wait for it alone.
WITH {members}, k AS (
    SELECT DISTINCT m.shard, m.workspace, m.batch FROM m
), b AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.id, b.items, b.next, b.waiting, b.running, b.succeeded, b.accepted, b.failed, b.cancelled, b.dirty, b.sealed,
           b.cancel_requested, b.version, b.attempts, b.allowed, b.due_at
      FROM k JOIN {schema}.batch b ON b.shard = ANY (ARRAY[k.shard]) AND b.workspace = k.workspace AND b.id = k.batch
     ORDER BY k.shard, b.workspace, b.id
       FOR UPDATE OF b
), cur AS MATERIALIZED (
    SELECT m.member, m.how, m.epoch AS wanted, m.output AS gives, m.error AS says, m.delay, b.shard, b.workspace, b.id, b.attempts, b.allowed,
           i.key, i.state, i.epoch, i.until, i.failures, i.deaths, i.lost, m.how = 'died' AND i.quiet AS unheard, i.output, i.decision, i.holder
      FROM b JOIN m ON m.shard = b.shard AND m.workspace = b.workspace AND m.batch = b.id
     CROSS JOIN LATERAL (
           SELECT i.key, i.state, i.epoch, i.until, i.failures, i.deaths, i.quiet, i.lost, i.output, i.decision, i.holder
             FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = m.key
              FOR UPDATE) AS i
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), ok AS MATERIALIZED (
    SELECT cur.*
      FROM t, cur
     WHERE cur.state = 'running' AND cur.epoch = cur.wanted AND (cur.until <= t.now) = (cur.how = 'died')
       AND (cur.how <> 'fail' OR cur.failures + 1 < cur.attempts) AND (cur.how <> 'died' OR cur.unheard OR cur.deaths + 1 < cur.allowed)
       AND NOT EXISTS (SELECT 1 FROM m AS x WHERE x.shard = cur.shard AND x.workspace = cur.workspace AND x.batch = cur.id AND x.key = cur.key
                                              AND x.member < cur.member)
), ended AS (
    UPDATE {schema}.item i
       SET state = CASE WHEN ok.how = 'done' THEN 'succeeded' ELSE 'waiting' END, output = ok.gives::json,
           failures = ok.failures + CASE WHEN ok.how = 'fail' THEN 1 ELSE 0 END, deaths = ok.deaths + CASE WHEN ok.how = 'died' AND NOT ok.unheard THEN 1 ELSE 0 END,
           quiet = false, lost = CASE WHEN ok.unheard THEN ok.lost + 1 ELSE 0 END,
           error = CASE WHEN ok.unheard THEN 'handed out to ' || ok.holder || ', but no response arrived' WHEN ok.how = 'died' THEN 'the lease of holder ' || ok.holder || ' expired' ELSE ok.says END,
           due_at = CASE WHEN ok.how <> 'done' THEN t.now + ok.delay::float8 * interval '1 ms' END, holder = NULL, until = NULL, updated_at = t.now
      FROM t, ok
     WHERE i.shard = ANY (ARRAY[ok.shard]) AND i.workspace = ok.workspace AND i.batch = ok.id AND i.key = ok.key
    RETURNING ok.member, ok.shard, ok.workspace, ok.id, ok.how, ok.unheard, i.state, i.failures, i.deaths, i.lost
), sums AS MATERIALIZED (
    SELECT e.shard, e.workspace, e.id, pg_catalog.count(*) AS ended, pg_catalog.count(*) FILTER (WHERE e.how = 'done') AS done
      FROM ended e
     GROUP BY e.shard, e.workspace, e.id
), moved AS (
    UPDATE {schema}.batch c
       SET running = b.running - sums.ended, succeeded = b.succeeded + sums.done, waiting = b.waiting + sums.ended - sums.done,
           version = b.version + sums.ended, updated_at = t.now,
           due_at = CASE WHEN b.sealed AND NOT b.cancel_requested AND b.next = b.items AND b.waiting + sums.ended - sums.done = 0
                              AND b.running = sums.ended AND b.dirty = 0
                         THEN t.now ELSE b.due_at END
      FROM t, b JOIN sums ON sums.shard = b.shard AND sums.workspace = b.workspace AND sums.id = b.id
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.shard = ANY (ARRAY[sums.shard]) AND c.workspace = b.workspace AND c.id = b.id
    RETURNING c.shard, c.workspace, c.id, b.version, c.due_at = t.now AS over, c.items - c.next + c.waiting AS pending, c.running, c.succeeded,
              c.failed, c.cancelled, c.accepted, c.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version + e.nth,
           CASE WHEN e.unheard THEN 'itemLost' WHEN m.how = 'done' THEN 'itemSucceeded' WHEN m.how = 'fail' THEN 'itemFailed' WHEN m.how = 'died' THEN 'itemDied'
                ELSE 'itemReleased' END,
           pg_catalog.json_build_object('key', m.key, 'state', e.state, 'failures', e.failures, 'deaths', e.deaths, 'lost', e.lost, 'over', coalesce(moved.over, false),
                             'counts', pg_catalog.json_build_object('pending', moved.pending, 'running', moved.running, 'succeeded', moved.succeeded,
                                                         'failed', moved.failed, 'cancelled', moved.cancelled, 'accepted', moved.accepted)),
           moved.updated_at
      FROM m JOIN (SELECT ended.*, pg_catalog.row_number() OVER (PARTITION BY ended.shard, ended.workspace, ended.id ORDER BY ended.member) AS nth
                     FROM ended) AS e ON e.member = m.member
      JOIN moved ON moved.shard = m.shard AND moved.workspace = m.workspace AND moved.id = m.batch
    {due_notices}
SELECT m.member,
       CASE WHEN ended.member IS NOT NULL THEN 1
            WHEN cur.member IS NULL AND EXISTS (SELECT 1 FROM {schema}.item i WHERE i.shard = ANY (ARRAY[m.shard]) AND i.workspace = m.workspace
                                                                              AND i.batch = m.batch AND i.key = m.key)
              OR EXISTS (SELECT 1 FROM m AS x WHERE x.shard = m.shard AND x.workspace = m.workspace AND x.batch = m.batch AND x.key = m.key
                                                AND x.member < m.member) THEN 2
            ELSE 0 END,
       coalesce(ended.state, cur.state, ''), coalesce(cur.epoch, 0), coalesce(ended.failures, cur.failures, 0), coalesce(ended.deaths, cur.deaths, 0),
       coalesce(cur.output::text, ''), coalesce(moved.over, false),
       coalesce(ended.member IS NULL AND cur.state = 'running' AND cur.epoch = cur.wanted AND (cur.until <= (SELECT t.now FROM t)) = (cur.how = 'died'), false)
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN ended ON ended.member = m.member
  LEFT JOIN moved ON ended.member IS NOT NULL AND moved.shard = m.shard AND moved.workspace = m.workspace AND moved.id = m.batch
