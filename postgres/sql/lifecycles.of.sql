-- A workspace in which a lifecycle of a name was brought by a program, or by the door.
-- $1 shard, $2 workspace ('' for all), $3 lifecycle, $4 origin
SELECT l.workspace
  FROM {schema}.lifecycle l
 WHERE l.shard = $1::smallint AND ($2::text = '' OR l.workspace = $2::text) AND l.name = $3::text AND l.origin = $4::text
 LIMIT 1
