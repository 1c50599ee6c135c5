-- Reads the histories of a workspace after an id, without void events and commit proofs,
-- and without API keys, which only callers who may manage keys can read.
-- :after id as text
SELECT pg_catalog.replace(h.id::text, '-', ''), h.n, h.stream, h.version, h.name, h.data::text,
       coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at
  FROM {schema}.history h
 WHERE h.shard = :shard AND h.workspace = :workspace COLLATE "default" AND -- COLLATE makes the planner use the order of ids, not the index of streams
        (h.id, h.n) > (:after::uuid, :n)
   AND pg_catalog.left(h.stream, 6) NOT IN ('$void/', '$mark/')
   AND pg_catalog.left(h.stream, 5) <> '$key/'
 ORDER BY h.shard, h.id, h.n
 LIMIT :limit
