-- Lists batches with items to take, or to pause, of one workspace or of all. The order is round robin: each workspace has one
-- batch before any workspace has a second, and so has each handler within a workspace; the longest unserved batch comes first. A batch that
-- cannot pay for its next item and has others in flight is left out: many such batches would hide the others behind the limit.
-- :handlers a JSON list; :kind the required kind of the handlers ('' for those of a program); :except what is left
-- out, as a JSON list of [workspace, handler ('' for all)]
SELECT w.workspace, w.id, w.handler
  FROM (
SELECT d.workspace, d.id, d.handler, d.served_at, pg_catalog.row_number() OVER (PARTITION BY d.workspace ORDER BY d.nth, d.served_at) AS turn
  FROM pg_catalog.jsonb_array_elements_text(:handlers::jsonb) AS h(name)
 CROSS JOIN LATERAL (
       SELECT b.workspace, b.id, b.handler, b.served_at, pg_catalog.row_number() OVER (PARTITION BY b.workspace ORDER BY b.served_at) AS nth
         FROM {schema}.batch b
        WHERE b.shard + 0 = :shard AND b.handler = h.name AND (:workspace = '' OR b.workspace = :workspace)
          AND NOT EXISTS (SELECT 1 FROM pg_catalog.jsonb_array_elements(:except::jsonb) AS x(item) WHERE x.item ->> 0 = b.workspace AND (x.item ->> 1 = '' OR x.item ->> 1 = b.handler))
          AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested
          AND b.running < b.parallel
          AND (:kind = '' OR EXISTS (SELECT 1 FROM {schema}.handler r WHERE r.shard = b.shard AND r.workspace = b.workspace AND r.name = b.handler AND r.kind = :kind))
          AND (b.next < b.items AND EXISTS (
                  SELECT 1
                    FROM (SELECT i.cost FROM {schema}.item i
                           WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.shard + 0 = b.shard + 0 AND i.workspace || '/' || i.batch = b.workspace || '/' || b.id AND i.n > b.next
                           ORDER BY i.n -- uses the index with this order
                           LIMIT 1) AS i, {schema}.wallet w
                   WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
                     AND (w.negative OR i.cost = 0 OR i.cost <= w.balance OR b.running + b.waiting = 0))
               OR b.waiting > 0 AND EXISTS (
              SELECT 1 FROM {schema}.item i WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id
                                              AND i.state = 'waiting' AND i.due_at <= (SELECT {now})))
        ORDER BY nth, b.served_at
        LIMIT :limit) AS d) AS w
 ORDER BY w.turn, w.served_at
 LIMIT :limit
