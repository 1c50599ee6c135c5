-- Lists operations that wait until a person says what happened. In this and the other lists of the inbox, the columns are
-- what identifies the entry, since when, who is responsible, until when, and facts.
SELECT e.operation, e.updated_at, coalesce(e.requester, ''), 'epoch'::timestamptz, e.lifecycle, e.id, coalesce(e.step, ''), coalesce(pg_catalog.substr(e.error, 1, 500), ''), CASE WHEN e.manual THEN 'manual' ELSE '' END
  FROM {schema}.entity e
 WHERE 0 + e.shard = :shard AND e.workspace = :workspace AND e.phase = 'uncertain' AND e.operation IS NOT NULL
 ORDER BY e.operation
 LIMIT :limit
