-- Reads :scan entities of a lifecycle in the order of their ids, and returns those that match a filter, and the last one that it
-- read. Rows beside those of a user's table never match.
-- :last sorts after every id; :status ('' for any)
WITH edge AS (
    SELECT e.id FROM {schema}.entity e
     WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id > :after
     ORDER BY e.id
     LIMIT 1 OFFSET :scan - 1
), j AS (
    SELECT e.*, coalesce(e.id = (SELECT edge.id FROM edge), false) AS at_edge,
           (:status = '' OR e.status = :status) AND NOT e.side
           AND {include lists/matches_times e} AS wanted
      FROM {schema}.entity e
     WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id > :after AND e.id <= coalesce((SELECT edge.id FROM edge), :last)
)
SELECT e.wanted, e.at_edge, e.lifecycle, e.id, coalesce(e.plan::text, ''), {include entities/result_columns e}
  FROM j AS e
 WHERE e.wanted OR e.at_edge
 ORDER BY e.id
 LIMIT :limit
