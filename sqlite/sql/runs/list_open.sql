-- Reads :scan runs of a status that few runs have, the newest first, and returns those that match a filter, and the last one.
WITH edge AS (
    SELECT r.id FROM holdfast_run AS r INDEXED BY holdfast_run_live
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id < :before AND r.id >= :from AND r.status = :status
       AND r.status NOT IN ('COMPLETED', 'CANCELLED')
     ORDER BY r.id DESC
     LIMIT 1 OFFSET :scan - 1
), j AS (
    SELECT r.*, coalesce(r.id = (SELECT edge.id FROM edge), false) AS at_edge,
           (:definition = '' OR r.definition = :definition) AND (:step = '' OR r.step = :step)
           AND (:handler = '' OR EXISTS (SELECT 1 FROM holdfast_step AS s
                                          WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = r.id AND s.name = r.step AND s.visit = r.visit AND s.handler = :handler))
           AND {include lists/matches_times r} AS wanted
      FROM holdfast_run AS r INDEXED BY holdfast_run_live
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id < :before AND r.status = :status
       AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND r.id >= coalesce((SELECT edge.id FROM edge), :from)
)
SELECT r.wanted, r.at_edge, r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0), r.updated_at
  FROM j AS r
 WHERE r.wanted OR r.at_edge
 ORDER BY r.id DESC
 LIMIT :limit
