-- Replaces the state of one scope that is alive and at the expected version, or
-- does nothing and returns nothing.
WITH moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, state = $7::text::jsonb, updated_at = {now}, expires_at = {now} + $8::bigint::float8 * interval '1 ms'
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.kind = $4::text AND s.id = $5::text
       AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
       AND ($6::bigint IS NULL OR s.version = $6)
       AND $12::bigint = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = $1 AND g.workspace = $2), 0)
       AND $13::text IS NULL
    RETURNING s.version, s.state, s.updated_at
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT $1, $3::uuid, 0, $2, '$scope/' || $4 || '/' || $5, moved.version, 'put', '{}',
           $9::text, $10::text, $11::text, moved.updated_at
      FROM moved
)
SELECT moved.version, moved.state::text FROM moved
