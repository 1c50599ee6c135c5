-- Returns the outcome for each member. The caller retries for an entity that exists and was not locked.
SELECT m.member,
       coalesce(result.applied, CASE WHEN EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                                                   AND e.lifecycle = m.lifecycle AND e.id = m.entity) THEN 2 ELSE 0 END),
       {include entities/result_columns result}
  FROM m LEFT JOIN result ON result.member = m.member
