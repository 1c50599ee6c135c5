SELECT s.version, s.state{text}
  FROM {schema}.scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope AND s.state IS NOT NULL
   AND (s.expires_at IS NULL OR s.expires_at > {now})
