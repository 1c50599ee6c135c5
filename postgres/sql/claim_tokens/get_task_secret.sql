-- Returns the secret that signs the ids of tasks.
SELECT pg_catalog.encode(s.value, 'hex')
  FROM {schema}.secret s
 WHERE s.one = 1 AND :shard IS NOT NULL AND :workspace IS NOT NULL
