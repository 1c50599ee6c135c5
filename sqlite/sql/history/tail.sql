-- What the histories of a workspace tell behind an id, but for what only tells that a
-- command was applied, and for API keys, which are told to those who may manage them.
SELECT lower(hex(h.id)), h.n, h.stream, h.version, h.name, h.data,
       coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at
  FROM holdfast_history AS h
 WHERE h.shard = :shard AND h.workspace = :workspace AND (h.id, h.n) > (unhex(:after, '-'), :n)
   AND substr(h.stream, 1, 6) NOT IN ('$void/', '$mark/')
   AND substr(h.stream, 1, 5) <> '$key/'
 ORDER BY h.id, h.n
 LIMIT :limit
