-- Workspaces, in the order of their names.
-- $2 workspace, behind which: $3 name, $4 limit, $5 the only name, '' for all
SELECT w.name, w.created_at
  FROM {schema}.workspace w
 WHERE w.name > $3::text AND ($5::text = '' OR w.name = $5) AND $1::smallint IS NOT NULL AND $2::text IS NOT NULL
 ORDER BY w.name
 LIMIT $4::bigint
