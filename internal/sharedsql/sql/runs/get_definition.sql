-- Returns a definition of a workspace.
SELECT d.id, d.body{text}, d.created_at
  FROM {schema}.definition AS d
 WHERE d.shard = :shard AND d.workspace = :workspace AND d.id = :definition
