-- Counts what a workspace has defined, each kind up to :limit: workflow definitions, lifecycles, reactions, handlers, webhooks, secrets,
-- and valid API keys. Reactions that Holdfast defines itself begin with '$'.
SELECT (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.definition AS t WHERE t.shard = :shard AND t.workspace = :workspace LIMIT :limit) AS d)
     + (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.lifecycle AS t WHERE t.shard = :shard AND t.workspace = :workspace LIMIT :limit) AS l)
     + (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.reaction AS t WHERE t.shard = :shard AND t.workspace = :workspace AND t.state <> 'removed' AND {pg}substr(t.name, 1, 1) <> '$' LIMIT :limit) AS r)
     + (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.handler AS t WHERE t.shard = :shard AND t.workspace = :workspace LIMIT :limit) AS h)
     + (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.webhook AS t WHERE t.shard = :shard AND t.workspace = :workspace AND t.removed_at IS NULL LIMIT :limit) AS w)
     + (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.named_secret AS t WHERE t.shard = :shard AND t.workspace = :workspace LIMIT :limit) AS s)
     + (SELECT {pg}count(*) FROM (SELECT 1 FROM {schema}.api_key AS t WHERE t.workspace = :workspace AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > {now}) LIMIT :limit) AS k)
