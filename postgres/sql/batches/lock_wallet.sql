-- Locks the wallet of a batch, for a transaction that settles an item and then writes the
-- caller's rows: batches.take locks the wallet first, too, so the lock order is the same.
WITH {members}, w AS MATERIALIZED (
    SELECT m.member
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
     CROSS JOIN LATERAL (
           SELECT w.id FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w
)
{include store/select_applied w}
