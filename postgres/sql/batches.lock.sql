-- Locks the wallet of a batch, for a transaction that ends an item and then writes what the
-- program wants: what takes of the batch has the wallet first, too.
-- $4 batch
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[])
             WITH ORDINALITY AS m(shard, workspace, command, batch, member)
), w AS MATERIALIZED (
    SELECT m.member
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
     CROSS JOIN LATERAL (
           SELECT w.id FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w
)
SELECT m.member, CASE WHEN w.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN w ON w.member = m.member
