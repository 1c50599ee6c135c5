-- Pauses a batch whose only remaining work is an item that its wallet cannot pay for. The
-- wallet is locked: a credit either came before and is seen, or comes after and resumes the batch.
WITH {members}, w AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.batch, w.balance, w.negative
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
     CROSS JOIN LATERAL (
           SELECT w.balance, w.negative FROM {schema}.wallet w
            WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
              FOR UPDATE) AS w
), b AS MATERIALIZED (
    SELECT w.member, w.shard, w.workspace, w.batch, w.balance, w.negative, b.status, b.next, b.waiting, b.running, b.version, b.cancel_requested
      FROM w CROSS JOIN LATERAL (
           SELECT b.status, b.next, b.waiting, b.running, b.version, b.cancel_requested
             FROM {schema}.batch b
            WHERE b.shard = w.shard AND b.workspace = w.workspace AND b.id = w.batch
              FOR UPDATE) AS b
), moved AS (
    UPDATE {schema}.batch c
       SET status = 'PAUSED', need = i.cost, version = b.version + 1, updated_at = {now}
      FROM b CROSS JOIN LATERAL (
           SELECT i.cost FROM {schema}.item i
            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.shard + 0 = b.shard + 0 AND i.workspace || '/' || i.batch = b.workspace || '/' || b.batch AND i.n > b.next
            ORDER BY i.n -- uses the index with this order
            LIMIT 1) AS i
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.batch
       AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running = 0 AND b.waiting = 0
       AND i.cost > b.balance AND i.cost > 0 AND NOT b.negative
    RETURNING b.member, c.version, c.need, c.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'paused', pg_catalog.json_build_object('need', moved.need), moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
{include store/select_applied moved}
