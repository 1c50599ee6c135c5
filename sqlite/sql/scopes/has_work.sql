WHEN 'scope' THEN CASE WHEN t.key = 0 AND q.value ->> 1 ->> 4 <> coalesce(( -- [shard, workspace, kind, id, version], version -1 for none; the shard is that of the scope, even if it is not in the list
     SELECT s.version FROM holdfast_scope AS s
      WHERE s.shard = q.value ->> 1 ->> 0 AND s.workspace = q.value ->> 1 ->> 1 AND s.kind = q.value ->> 1 ->> 2 AND s.id = q.value ->> 1 ->> 3
        AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})), -1) THEN 0 END
WHEN 'old scope' THEN (
     SELECT 0 FROM holdfast_scope AS s INDEXED BY holdfast_scope_expires WHERE s.shard = t.value AND s.expires_at IS NOT NULL AND s.expires_at <= {now} LIMIT 1)
