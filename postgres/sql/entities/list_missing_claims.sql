-- Returns, of one page of entities, those that are in a claim status without a claim. The
-- last row shows where the page ended.
-- :lifecycles a JSON object of lists of claim statuses
WITH page AS MATERIALIZED (
    SELECT e.workspace, e.lifecycle, e.id, e.status, e.phase, e.side
      FROM {schema}.entity e
     WHERE e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace)
       AND (e.workspace, e.lifecycle, e.id) > (:after_workspace, :after_lifecycle, :after_entity)
     ORDER BY e.workspace, e.lifecycle, e.id
     LIMIT :limit
), last AS (
    SELECT p.workspace, p.lifecycle, p.id FROM page p
     ORDER BY p.workspace DESC, p.lifecycle DESC, p.id DESC
     LIMIT 1
)
SELECT p.workspace, p.lifecycle, p.id, p.status FROM page p
 WHERE p.phase = 'free' AND NOT p.side AND :lifecycles::jsonb -> p.lifecycle ? p.status
UNION ALL
SELECT l.workspace, l.lifecycle, l.id, '' FROM last l
