-- Lists approvals that are pending and not past their end.
SELECT a.run || '/' || a.step || '/' || a.visit, a.created_at, '', coalesce(a.expires_at, 0), a.run, a.step, CAST(a.visit AS TEXT), substr(a.prompt, 1, 500), a.requesters
  FROM holdfast_approval AS a INDEXED BY holdfast_approval_pending
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > {now})
 ORDER BY a.run, a.step, a.visit
 LIMIT :limit
