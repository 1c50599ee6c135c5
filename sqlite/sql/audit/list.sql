-- Lists the audit of a workspace, the latest first.
SELECT a.id, a.action, a.subject, a.actor, a.request, coalesce(a.before, ''), coalesce(a.after, ''), a.at
  FROM holdfast_audit AS a
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.id < :id
   AND (:actor = '' OR a.actor = :actor) AND (:action = '' OR a.action = :action) AND (:subject = '' OR a.subject = :subject)
   AND (:since = 0 OR a.at >= :since) AND (:until = 0 OR a.at < :until)
 ORDER BY a.id DESC
 LIMIT :limit
