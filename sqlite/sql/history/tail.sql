-- Reads the histories of a workspace after an id, without void events and commit proofs,
-- and without API keys, which only callers who may manage keys can read.
SELECT lower(hex(h.id)), h.n, h.stream, h.version, h.name, h.data,
       coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at
  FROM holdfast_history AS h
 WHERE h.shard = :shard AND h.workspace = :workspace AND (h.id, h.n) > (unhex(:after, '-'), :n)
   AND substr(h.stream, 1, 6) NOT IN ('$void/', '$mark/')
   AND substr(h.stream, 1, 5) <> '$key/'
 ORDER BY h.id, h.n
 LIMIT :limit
