-- Replaces the state of one existing scope that is at the expected version, or does nothing
-- and returns nothing.
WITH moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, state = :state::jsonb, updated_at = {now}, expires_at = {now} + :ttl::float8 * interval '1 ms'
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
       AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
       AND (:want IS NULL OR s.version = :want)
       AND {include registry/is_current}
    RETURNING s.version, s.state, s.updated_at
), {include history/write}
    SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, moved.version, 'put', :note::json,
           :correlation, :causation, :actor, moved.updated_at
      FROM moved
)
SELECT moved.version, moved.state::text FROM moved
