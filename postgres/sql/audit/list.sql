-- Lists the audit of a workspace, the latest first. A filter that is '' or 0 selects all.
-- :since, :until in ms since 1970
SELECT a.id, a.action, a.subject, a.actor, a.request, coalesce(a.before::text, ''), coalesce(a.after::text, ''), a.at
  FROM {schema}.audit a
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.id < :id
   AND (:actor = '' OR a.actor = :actor) AND (:action = '' OR a.action = :action) AND (:subject = '' OR a.subject = :subject)
   AND (:since = 0 OR a.at >= pg_catalog.to_timestamp(:since::float8 / 1000::float8)) AND (:until = 0 OR a.at < pg_catalog.to_timestamp(:until::float8 / 1000::float8))
 ORDER BY a.id DESC
 LIMIT :limit
