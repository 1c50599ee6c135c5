-- The lock on the id of an entity that is being created; {1} is the prefix of an argument name.
pg_catalog.hashtextextended('entity/' || {1}shard::text || '/' || {1}workspace || '/' || {1}lifecycle || '/' || {1}entity, 0)
