-- Workspaces, in the order of their names.
-- ?2 workspace, behind which: ?3 name, ?4 limit, ?5 the only name, '' for all
-- do
SELECT w.name, w.created_at
  FROM holdfast_workspace AS w
 WHERE w.name > ?3 AND (?5 = '' OR w.name = ?5)
 ORDER BY w.name
 LIMIT +?4
