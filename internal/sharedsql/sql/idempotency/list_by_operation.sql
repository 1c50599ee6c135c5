-- Lists requests whose response is, or will be, the outcome of an operation, unless they have expired.
SELECT r.key, r.state, r.operation, coalesce(r.subject, ''), coalesce(r.status, 0), coalesce(r.answer, ''), r.created_at
  FROM {schema}.request AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.operation = :operation AND r.key > :after AND r.expires_at > {now}
 ORDER BY r.key
 LIMIT :limit
