WHEN 'scope' THEN -- [shard, workspace, kind, id, version], version -1 for none; the shard is that of the scope, even if it is not in the list
     (SELECT CASE WHEN w.seen IS DISTINCT FROM coalesce((
             SELECT s.version FROM {schema}.scope s
              WHERE s.shard = w.shard AND s.workspace = w.workspace AND s.kind = w.kind AND s.id = w.id
                AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > c.now)), -1) THEN 0 END
        FROM (SELECT (x.item ->> 0)::smallint AS shard, x.item ->> 1 AS workspace, x.item ->> 2 AS kind, x.item ->> 3 AS id, (x.item ->> 4)::bigint AS seen
                FROM (SELECT (q.item ->> 1)::jsonb AS item) AS x) AS w
       WHERE t.k = 1)
WHEN 'old scope' THEN
     (SELECT 0 FROM {schema}.scope s WHERE s.shard = t.shard::smallint AND s.expires_at <= c.now ORDER BY s.expires_at LIMIT 1)
