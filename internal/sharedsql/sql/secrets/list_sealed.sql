-- Lists the encrypted values of all workspaces that another key than the given one encrypted, in the order of their places, after
-- a given one.
SELECT x.place, x.kind, x.workspace, x.name, x.sealed
  FROM (SELECT 'secret/' || s.workspace || '/' || s.name AS place, 'secret' AS kind, s.workspace, s.name, s.sealed
          FROM {schema}.named_secret AS s
         WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
         UNION ALL
        SELECT 'secret/' || s.workspace || '/' || s.name || '/former', 'secret', s.workspace, s.name, s.former
          FROM {schema}.named_secret AS s
         WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace) AND s.former IS NOT NULL
         UNION ALL
        SELECT 'handler/' || h.workspace || '/' || h.name, 'handler', h.workspace, h.name, h.secret
          FROM {schema}.handler AS h
         WHERE h.shard = :shard AND (:workspace = '' OR h.workspace = :workspace) AND h.secret <> ''
         UNION ALL
        SELECT 'webhook/' || w.workspace || '/' || w.id, 'webhook', w.workspace, w.id, w.secret
          FROM {schema}.webhook AS w
         WHERE w.shard = :shard AND (:workspace = '' OR w.workspace = :workspace) AND w.secret <> ''
         UNION ALL
        SELECT 'webhook/' || w.workspace || '/' || w.id || '/former', 'webhook', w.workspace, w.id, w.former
          FROM {schema}.webhook AS w
         WHERE w.shard = :shard AND (:workspace = '' OR w.workspace = :workspace) AND w.former IS NOT NULL) AS x
 WHERE x.place > :after AND x.sealed NOT LIKE 'secret:%' AND x.sealed NOT LIKE :key || '.%'
 ORDER BY x.place
 LIMIT :limit
