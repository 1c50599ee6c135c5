-- Approvals: one, or those behind one, of a status, of a run.
-- ?1 shard, ?2 workspace, ?3 one ('' for all), ?4 status ('' for any), ?5 run ('' for any), ?6 behind, ?7 limit
-- do
SELECT a.id, a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a
 WHERE a.shard = ?1 AND a.workspace = ?2 AND (?3 = '' OR a.id = ?3) AND (?4 = '' OR a.status = ?4)
   AND (?5 = '' OR a.run = ?5) AND a.id > ?6
 ORDER BY a.id
 LIMIT ?7
