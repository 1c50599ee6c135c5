-- Handlers, in the order of their names, behind one of them, or one.
-- ?1 shard, ?2 workspace, ?3 name ('' for all), ?4 behind, ?5 limit
-- do
SELECT h.name, h.kind, h.url, h.safety, h.unknown, h.timeout, h.secret, h.created_at, h.updated_at
  FROM holdfast_handler AS h
 WHERE h.shard = ?1 AND h.workspace = ?2 AND (?3 = '' OR h.name = ?3) AND h.name > ?4
 ORDER BY h.name
 LIMIT +?5
