-- What the histories of a workspace tell behind an id, but for what only tells that a
-- command was applied, and for API keys, which are told to those who may manage them.
-- ?1 shard, ?2 workspace; behind: ?3 id as text, ?4 n; ?5 limit
-- do
SELECT lower(hex(h.id)), h.n, h.stream, h.version, h.name, h.data,
       coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at
  FROM holdfast_history AS h
 WHERE h.shard = ?1 AND h.workspace = ?2 AND (h.id, h.n) > (unhex(?3, '-'), ?4)
   AND substr(h.stream, 1, 6) NOT IN ('$void/', '$mark/')
   AND substr(h.stream, 1, 5) <> '$key/'
 ORDER BY h.id, h.n
 LIMIT +?5
