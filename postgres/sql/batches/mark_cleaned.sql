-- Records that items of a batch were cleaned up, under the lease of the cleanup. An item
-- whose holder may still have been working is cleaned up again when that lease ends. Any
-- other item is clean, except for a last cleanup after the handler's timeout. Recording the
-- same cleanup twice does not count as that last cleanup.
-- :items a JSON list of [key, sweeps, whether a holder may still have been working (1), whether the item was not cleaned up
-- yet (1)]
WITH {members}, b AS MATERIALIZED (
    SELECT m.member, m.items AS page, b.shard, b.workspace, b.id, b.timeout, b.dirty, b.waiting, b.running, b.cancel_requested, b.sealed, b.next, b.items, b.due_at
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       FOR UPDATE OF b
), cur AS MATERIALIZED (
    SELECT b.member, b.shard, b.workspace, b.id, b.timeout, i.key, i.dirty, i.late, x.item ->> 2 = '1' AS early, x.item ->> 3 = '1' AS was
      FROM b CROSS JOIN LATERAL pg_catalog.json_array_elements(b.page::json) AS x(item)
     CROSS JOIN LATERAL (
           SELECT i.key, i.dirty, i.late, i.sweeps, i.sweep_at FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = x.item ->> 0
              FOR UPDATE) AS i
     WHERE i.sweeps = (x.item ->> 1)::bigint AND (i.sweep_at > {now} OR NOT i.dirty) -- an item that is clean has no lease to lose
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), swept AS (
    UPDATE {schema}.item i
       SET dirty = cur.dirty AND cur.early,
           sweep_at = CASE WHEN NOT cur.dirty AND cur.was THEN i.sweep_at WHEN NOT cur.dirty THEN NULL WHEN cur.early THEN coalesce(cur.late, t.now) ELSE t.now + cur.timeout::float8 * interval '1 ms' END
      FROM t, cur
     WHERE i.shard = ANY (ARRAY[cur.shard]) AND i.workspace = cur.workspace AND i.batch = cur.id AND i.key = cur.key
    RETURNING cur.member, cur.dirty AND NOT i.dirty AS clean
), moved AS (
    UPDATE {schema}.batch c
       SET dirty = b.dirty - n.clean, error = NULL,
           due_at = CASE WHEN b.dirty = n.clean AND b.waiting = 0 AND b.running = 0 AND (b.cancel_requested OR b.sealed AND b.next = b.items)
                         THEN t.now ELSE b.due_at END
      FROM t, b JOIN (SELECT swept.member, pg_catalog.count(*) FILTER (WHERE swept.clean) AS clean FROM swept GROUP BY swept.member) AS n ON n.member = b.member
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.id AND (n.clean > 0 OR c.error IS NOT NULL AND c.status IN ('CANCELLED', 'COMPLETED'))
    RETURNING b.member, c.due_at IS NOT NULL AND c.due_at = t.now AS over
)
SELECT m.member, 1, (SELECT pg_catalog.count(*) FROM swept WHERE swept.member = m.member), coalesce(moved.over, false)
  FROM m LEFT JOIN moved ON moved.member = m.member
