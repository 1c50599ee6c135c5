-- How many entities of a lifecycle are in a status that a list has not, or would go
-- back to one from their claim.
-- $1 shard, $2 workspace, $3 lifecycle, $4 statuses, a JSON list
SELECT CASE WHEN e.side OR $4::text::jsonb ? e.status THEN e.revert ELSE e.status END, count(*)
  FROM {schema}.entity e
 WHERE e.shard = $1::smallint AND e.workspace = $2::text AND e.lifecycle = $3::text
   AND ((NOT e.side AND NOT $4::text::jsonb ? e.status) OR (e.phase <> 'free' AND NOT $4::text::jsonb ? e.revert))
 GROUP BY 1
 ORDER BY 1
