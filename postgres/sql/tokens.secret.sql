-- What the ids of tasks are signed with.
-- $1 shard, $2 workspace, both not looked at
SELECT pg_catalog.encode(s.value, 'hex')
  FROM {schema}.secret s
 WHERE s.one = 1 AND $1::smallint IS NOT NULL AND $2::text IS NOT NULL
