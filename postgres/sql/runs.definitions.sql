-- Definitions of a workspace, by their ids: one, or those behind one.
-- $1 shard, $2 workspace, $3 one ('' for all), $4 behind, $5 limit
SELECT d.id, d.body::text, d.created_at
  FROM {schema}.definition d
 WHERE d.shard = $1::smallint AND d.workspace = $2::text AND ($3::text = '' OR d.id = $3) AND d.id > $4::text
 ORDER BY d.id
 LIMIT $5::bigint
