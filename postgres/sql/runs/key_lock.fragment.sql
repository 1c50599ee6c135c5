-- The lock on the key of a run that is being started; {1} stands before the name of an argument.
pg_catalog.hashtextextended('run/' || {1}shard::text || '/' || {1}workspace || '/' || {1}key, 0)
