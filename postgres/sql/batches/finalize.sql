-- Accepts succeeded, undecided items of a batch: the named ones, or all. Accepts none after
-- a cancel was requested or the batch has finished.
-- :keys a JSON list, null for all
WITH {members}, {include store/time}, cur AS MATERIALIZED (
    SELECT m.member, m.keys, b.shard, b.workspace, b.id, b.status, b.cancel_requested, b.accepted, b.version
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       FOR UPDATE OF b
), unknown_keys AS (
    SELECT cur.member, pg_catalog.min(k.key) AS key
      FROM cur CROSS JOIN LATERAL pg_catalog.json_array_elements_text(coalesce(cur.keys, '[]')::json) AS k(key)
     WHERE (SELECT true FROM {schema}.item i WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.id AND i.key = k.key LIMIT 1) IS NULL
     GROUP BY cur.member
), named AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.id, k.key
      FROM cur CROSS JOIN LATERAL (
           SELECT DISTINCT x.key FROM pg_catalog.json_array_elements_text(cur.keys::json) AS x(key)
            UNION ALL
           SELECT i.key FROM {schema}.item i
            WHERE cur.keys IS NULL AND i.shard = ANY (ARRAY[cur.shard]) AND i.workspace = cur.workspace AND i.batch = cur.id AND i.state = 'succeeded' AND i.decision IS NULL
           ) AS k
     WHERE NOT cur.cancel_requested AND cur.status NOT IN ('CANCELLED', 'COMPLETED')
       AND NOT EXISTS (SELECT 1 FROM unknown_keys WHERE unknown_keys.member = cur.member)
), taken AS (
    UPDATE {schema}.item i
       SET decision = 'accepted', updated_at = t.now
      FROM t, named
     WHERE i.shard = ANY (ARRAY[named.shard]) AND i.workspace = named.workspace AND i.batch = named.id AND i.key = named.key AND i.state = 'succeeded' AND i.decision IS NULL
    RETURNING named.member
), moved AS (
    UPDATE {schema}.batch b
       SET accepted = cur.accepted + n.taken, version = cur.version + 1, updated_at = t.now
      FROM t, cur JOIN (SELECT taken.member, pg_catalog.count(*) AS taken FROM taken GROUP BY taken.member) AS n ON n.member = cur.member
     WHERE b.shard = ANY (ARRAY[cur.shard]) AND b.workspace = cur.workspace AND b.id = cur.id
    RETURNING cur.member, n.taken, b.version, b.accepted, b.updated_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'itemsAccepted',
           pg_catalog.json_build_object('taken', moved.taken, 'accepted', moved.accepted), NULL, NULL, m.actor, moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, cur.member IS NOT NULL, coalesce(moved.taken, 0), coalesce(unknown_keys.key, '')
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN unknown_keys ON unknown_keys.member = m.member
