-- Deletes a page of the items of a batch that is past its retention, from a key on, and marks the batch, so that no reader takes the rest for
-- all items. Items of an ended batch are never added or leased; one that still has to be looked at after its cleanup stays until then. When
-- a page from the beginning finds none to delete, a bulk is deleted with its row. Before that, the batch goes behind the other ones.
-- A batch that others have locked is skipped.
WITH {members few}, {include store/time}, cur AS MATERIALIZED (
    SELECT m.member, m.room, m.after, b.shard, b.workspace, b.id, b.bulk, b.prune_at
      FROM m CROSS JOIN LATERAL (
           SELECT b.shard, b.workspace, b.id, b.about IS NOT NULL AS bulk, b.prune_at FROM {schema}.batch b
            WHERE b.shard = m.shard AND b.workspace = m.workspace AND b.id = m.batch
              FOR UPDATE SKIP LOCKED) AS b
), page AS MATERIALIZED (
    SELECT cur.member, i.shard, i.workspace, i.batch, i.key
      FROM t, cur CROSS JOIN LATERAL (
           SELECT i.shard, i.workspace, i.batch, i.key FROM {schema}.item i
            WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.id AND i.key > cur.after AND i.sweep_at IS NULL
            ORDER BY i.shard, i.workspace, i.batch, i.key
            LIMIT cur.room) AS i
     WHERE cur.prune_at <= t.now
), items AS (
    DELETE FROM {schema}.item i USING page p
     WHERE i.shard = ANY (ARRAY[p.shard]) AND i.workspace = p.workspace AND i.batch = p.batch AND i.key = p.key AND i.sweep_at IS NULL
    RETURNING p.member
), gone AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.id, cur.bulk, p.deleted, p.size < cur.room AND p.deleted = p.size AND cur.after = '' AS whole, CASE WHEN p.size = cur.room THEN p.last ELSE '' END AS last,
           CASE WHEN p.size < cur.room AND cur.after = '' THEN
               (SELECT pg_catalog.max(i.sweep_at) FROM {schema}.item i
                 WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.id AND i.sweep_at IS NOT NULL) END AS sweep_at
      FROM t, cur CROSS JOIN LATERAL (
           SELECT (SELECT pg_catalog.count(*) FROM page WHERE page.member = cur.member) AS size,
                  (SELECT pg_catalog.max(page.key) FROM page WHERE page.member = cur.member) AS last,
                  (SELECT pg_catalog.count(*) FROM items WHERE items.member = cur.member) AS deleted) AS p
     WHERE cur.prune_at <= t.now
), bulks AS (
    DELETE FROM {schema}.batch b USING gone
     WHERE gone.bulk AND gone.whole AND gone.sweep_at IS NULL AND b.shard = ANY (ARRAY[gone.shard]) AND b.workspace = gone.workspace AND b.id = gone.id
), marked AS (
    UPDATE {schema}.batch b
       SET pruned_at = coalesce(b.pruned_at, t.now),
           prune_at = CASE WHEN NOT gone.whole THEN t.now ELSE greatest(gone.sweep_at, CASE WHEN gone.sweep_at IS NOT NULL THEN t.now + interval '1 minute' END) END
      FROM t, gone
     WHERE NOT (gone.bulk AND gone.whole AND gone.sweep_at IS NULL) AND b.shard = ANY (ARRAY[gone.shard]) AND b.workspace = gone.workspace AND b.id = gone.id
)
SELECT m.member, CASE WHEN gone.member IS NOT NULL THEN 1 ELSE 0 END, coalesce(gone.deleted, 0), coalesce(gone.last, ''), coalesce(gone.whole AND gone.sweep_at IS NULL, false)
  FROM m LEFT JOIN gone ON gone.member = m.member
