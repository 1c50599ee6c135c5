-- A page of entities, behind one, with those that are in a claim status although
-- nobody has claimed them. The last row says how far the page went.
-- $1 shard, $2 workspace ('' for all), $3 lifecycles as a JSON object of lists of claim statuses, $4 behind which workspace, $5 lifecycle,
-- $6 entity, $7 limit
WITH page AS MATERIALIZED (
    SELECT e.workspace, e.lifecycle, e.id, e.status, e.phase, e.side
      FROM {schema}.entity e
     WHERE e.shard = $1::smallint AND ($2::text = '' OR e.workspace = $2::text)
       AND (e.workspace, e.lifecycle, e.id) > ($4::text, $5::text, $6::text)
     ORDER BY e.workspace, e.lifecycle, e.id
     LIMIT $7::bigint
), last AS (
    SELECT p.workspace, p.lifecycle, p.id FROM page p
     ORDER BY p.workspace DESC, p.lifecycle DESC, p.id DESC
     LIMIT 1
)
SELECT p.workspace, p.lifecycle, p.id, p.status FROM page p
 WHERE p.phase = 'free' AND NOT p.side AND $3::text::jsonb -> p.lifecycle ? p.status
UNION ALL
SELECT l.workspace, l.lifecycle, l.id, '' FROM last l
