-- The lock on the key of a run that is being started; {1} is the prefix of an argument name.
pg_catalog.hashtextextended('run/' || {1}shard::text || '/' || {1}workspace || '/' || {1}key, 0)
