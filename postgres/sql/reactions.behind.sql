-- Streams on which there is more than a reaction knows of, in the order of their
-- names.
-- $1 shard, $2 workspace, $3 reaction, $4 after, $5 limit
SELECT s.name, s.head
  FROM {schema}.stream s
  LEFT JOIN LATERAL (
       SELECT f.due FROM {schema}.follow f
        WHERE f.shard = s.shard AND f.workspace = s.workspace AND f.reaction = $3::text AND f.stream = s.name
        LIMIT 1) AS f ON true
 WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name > $4::text
   AND (f.due IS NULL OR f.due < s.head)
 ORDER BY s.name
 LIMIT $5::bigint
