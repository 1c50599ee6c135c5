-- Returns the revision of a workspace's registry, the generation of the database, the workspace's reactions, and its lifecycles. A
-- lifecycle has its statuses in the column of the events, the statuses of an announced
-- config in the column of the streams, and its claim statuses.
SELECT coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = :shard AND g.workspace = :workspace), 0),
       coalesce((SELECT pg_catalog.max(r.generation) FROM {schema}.restore r), 0),
       coalesce(q.name, ''), coalesce(q.source, ''), coalesce(q.events, ''), coalesce(q.streams, ''), coalesce(q.claims, '')
  FROM (SELECT 1) AS one
  LEFT JOIN (SELECT r.name, r.source, r.events::text AS events, r.streams, NULL AS claims
               FROM {schema}.reaction r
              WHERE r.shard = :shard AND r.workspace = :workspace AND r.state <> 'removed'
             UNION ALL
             SELECT l.name, 'lifecycle', l.statuses::text, l.wanted::text, l.claims::text
               FROM {schema}.lifecycle l
              WHERE l.shard = :shard AND l.workspace = :workspace) AS q ON true
 ORDER BY q.name
