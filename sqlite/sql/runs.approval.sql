-- An approval.
-- ?1 shard, ?2 workspace, ?3 run, ?4 step, ?5 visit
-- do
SELECT a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a
 WHERE a.shard = ?1 AND a.workspace = ?2 AND a.run = ?3 AND a.step = ?4 AND a.visit = ?5
