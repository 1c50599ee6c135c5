-- What the histories of a workspace tell behind an id, but for what only tells that a
-- command was applied, and for API keys, which are told to those who may manage them.
-- :after id as text
SELECT pg_catalog.replace(h.id::text, '-', ''), h.n, h.stream, h.version, h.name, h.data::text,
       coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at
  FROM {schema}.history h
 WHERE h.shard = :shard AND h.workspace = :workspace COLLATE "default" AND -- so not by the streams, but in the order of the index
        (h.id, h.n) > (:after::uuid, :n)
   AND pg_catalog.left(h.stream, 6) NOT IN ('$void/', '$mark/')
   AND pg_catalog.left(h.stream, 5) <> '$key/'
 ORDER BY h.shard, h.id, h.n
 LIMIT :limit
