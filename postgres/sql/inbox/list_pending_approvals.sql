-- Lists approvals that are pending and not past their end.
SELECT a.run || '/' || a.step || '/' || a.visit::text, a.created_at, '', coalesce(a.expires_at, 'epoch'), a.run, a.step, a.visit::text, pg_catalog.substr(a.prompt, 1, 500), a.requesters::text
  FROM {schema}.approval a
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > {now})
 ORDER BY a.run, a.step, a.visit
 LIMIT :limit
