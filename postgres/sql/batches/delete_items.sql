-- Deletes a page of the items of a batch that is past its retention, and marks the batch, so that no reader takes the rest for all items.
-- Items of an ended batch are never added or leased; one that still has to be looked at after its cleanup stays until then. With the
-- last page, a bulk is deleted with its row. A statement that waited for the batch sees its items as they were before: it may find
-- too many left, but never too few.
WITH {members few}, {include store/time}, cur AS MATERIALIZED (
    SELECT m.member, m.room, b.shard, b.workspace, b.id, b.bulk, b.prune_at
      FROM m CROSS JOIN LATERAL (
           SELECT b.shard, b.workspace, b.id, b.about IS NOT NULL AS bulk, b.prune_at FROM {schema}.batch b
            WHERE b.shard = m.shard AND b.workspace = m.workspace AND b.id = m.batch
              FOR UPDATE) AS b
), page AS MATERIALIZED (
    SELECT cur.member, i.shard, i.workspace, i.batch, i.key
      FROM t, cur CROSS JOIN LATERAL (
           SELECT i.shard, i.workspace, i.batch, i.key FROM {schema}.item i
            WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.id AND i.sweep_at IS NULL
            ORDER BY i.shard, i.workspace, i.batch, i.key
            LIMIT cur.room) AS i
     WHERE cur.prune_at <= t.now
), items AS (
    DELETE FROM {schema}.item i USING page p
     WHERE i.shard = ANY (ARRAY[p.shard]) AND i.workspace = p.workspace AND i.batch = p.batch AND i.key = p.key AND i.sweep_at IS NULL
    RETURNING p.member
), gone AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.id, cur.bulk, p.size, p.size < cur.room AS last,
           p.deleted < p.size OR p.size < cur.room AND (SELECT true FROM {schema}.item i
                                   WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.id AND i.sweep_at IS NOT NULL LIMIT 1) AS kept
      FROM t, cur CROSS JOIN LATERAL (
           SELECT (SELECT pg_catalog.count(*) FROM page WHERE page.member = cur.member) AS size,
                  (SELECT pg_catalog.count(*) FROM items WHERE items.member = cur.member) AS deleted) AS p
     WHERE cur.prune_at <= t.now
), bulks AS (
    DELETE FROM {schema}.batch b USING gone
     WHERE gone.bulk AND gone.last AND gone.kept IS NOT TRUE AND b.shard = ANY (ARRAY[gone.shard]) AND b.workspace = gone.workspace AND b.id = gone.id
), marked AS (
    UPDATE {schema}.batch b
       SET pruned_at = coalesce(b.pruned_at, t.now),
           prune_at = CASE WHEN NOT gone.last THEN b.prune_at WHEN gone.kept THEN t.now + interval '1 minute' END
      FROM t, gone
     WHERE NOT (gone.bulk AND gone.last AND gone.kept IS NOT TRUE) AND b.shard = ANY (ARRAY[gone.shard]) AND b.workspace = gone.workspace AND b.id = gone.id
)
SELECT m.member, CASE WHEN gone.member IS NOT NULL THEN 1 ELSE 0 END, coalesce(gone.size, 0), coalesce(gone.last, true)
  FROM m LEFT JOIN gone ON gone.member = m.member
