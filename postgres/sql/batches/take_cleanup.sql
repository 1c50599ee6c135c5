-- Takes items of a workspace to clean up, the longest due first, and leases them for the
-- cleanup. Items that need a handler or artifacts that this node does not have are left out. Rows are
-- found again by their ctid, as in entities.take_due. An item is undone once no holder can still be working: until
-- then, any node can clean up. A take makes sweeps the next odd number; a holder that gives the cleanup back makes it even.
-- :kind 'worker' to take only items that workers undo; :handlers a JSON list of handlers that the worker serves, or
-- whose batches this node can undo; :urls whether this node calls handlers that are URLs; :artifacts whether it has the artifacts
WITH due AS MATERIALIZED (
    SELECT i.shard, i.workspace, i.ctid AS place, b.handler, b.undo, b.artifacts
      FROM {schema}.item i
     CROSS JOIN LATERAL ( -- looked up for each item, not the other way round
           SELECT b.handler, b.undo, b.artifacts FROM {schema}.batch b
            WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch
           OFFSET 0) AS b
     WHERE i.shard + 0 = :shard AND i.workspace = :workspace AND i.sweep_at IS NOT NULL AND i.sweep_at <= (SELECT {now})
       AND CASE WHEN NOT b.undo OR NOT i.dirty OR i.late > (SELECT {now}) THEN :kind = ''
                WHEN b.handler IN (SELECT h.name FROM pg_catalog.jsonb_array_elements_text(:handlers::jsonb) AS h(name)) THEN
                     :kind = '' OR EXISTS (SELECT 1 FROM {schema}.handler r WHERE r.shard = i.shard AND r.workspace = i.workspace AND r.name = b.handler AND r.kind = :kind)
                ELSE :urls = 1 AND EXISTS (SELECT 1 FROM {schema}.handler r WHERE r.shard = i.shard AND r.workspace = i.workspace AND r.name = b.handler AND r.kind = 'http') END
       AND (NOT b.artifacts OR :artifacts = 1)
     ORDER BY i.sweep_at
     LIMIT :limit
       FOR UPDATE OF i SKIP LOCKED
)
UPDATE {schema}.item i
   SET sweep_at = {now} + :lease::float8 * interval '1 ms', sweeps = i.sweeps + 2::bigint - i.sweeps % 2::bigint
  FROM due
 WHERE i.ctid = due.place AND i.shard = due.shard AND i.workspace = due.workspace AND i.sweep_at <= {now}
RETURNING i.workspace, i.batch, i.key, i.sweeps, i.state, i.epoch, i.input::text, coalesce(i.output::text, ''), i.dirty,
          i.late IS NOT NULL AND i.late > {now}, due.handler, due.undo, due.artifacts, i.sweep_at
