-- Reads :scan runs, the newest first, and returns those that match a filter, and the last one that it read.
-- :status ('' for any)
-- :before, :from bound the ids; :definition, :step (the current one) and :handler (that of the current step) are '' for any
WITH edge AS (
    SELECT r.id FROM {schema}.run AS r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id < :before AND r.id >= :from
     ORDER BY r.id DESC
     LIMIT 1 OFFSET :scan - 1
), j AS (
    SELECT r.*, coalesce(r.id = (SELECT edge.id FROM edge), false) AS at_edge,
           (:status = '' OR r.status = :status)
           AND (:definition = '' OR r.definition = :definition) AND (:step = '' OR r.step = :step)
           AND (:handler = '' OR EXISTS (SELECT 1 FROM {schema}.step AS s
                                          WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = r.id AND s.name = r.step AND s.visit = r.visit AND s.handler = :handler))
           AND {include lists/matches_times r} AS wanted
      FROM {schema}.run AS r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id < :before AND r.id >= coalesce((SELECT edge.id FROM edge), :from)
)
SELECT r.wanted, r.at_edge, r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input{text}, r.state{text}, r.memo{text}, coalesce(r.output{text}, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, {no_time}), coalesce(r.finished_at, {no_time}), r.updated_at
  FROM j AS r
 WHERE r.wanted OR r.at_edge
 ORDER BY r.id DESC
 LIMIT :limit
