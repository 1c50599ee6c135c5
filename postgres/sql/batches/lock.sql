-- Locks the wallet of a batch, for a transaction that ends an item and then writes what the
-- program wants: what takes of the batch has the wallet first, too.
WITH {members}, w AS MATERIALIZED (
    SELECT m.member
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
     CROSS JOIN LATERAL (
           SELECT w.id FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w
)
{include store/applied w}
