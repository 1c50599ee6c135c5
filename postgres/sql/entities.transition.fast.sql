-- Moves one entity from the one status named ($6; NULL where several are), or
-- does nothing and returns nothing.
WITH moved AS (
    UPDATE {schema}.entity e
       SET status = $8::text, version = e.version + 1, data = coalesce($10::text::jsonb, e.data), updated_at = {now}
     WHERE e.shard = $1::smallint AND e.workspace = $2::text AND e.lifecycle = $4::text AND e.id = $5::text
       AND e.status = $6::text AND e.phase = 'free'
       AND ($9::bigint IS NULL OR e.version = $9)
       AND $7::text IS NOT NULL
       AND $16::bigint = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = $1 AND g.workspace = $2), 0)
       AND $17::text IS NULL
    RETURNING e.status, e.version, e.data, e.created_at, e.updated_at
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT $1, $3::uuid, 0, $2, '$entity/' || $4 || '/' || $5, moved.version, $11::text,
           pg_catalog.json_build_object('from', $6::text, 'to', moved.status, 'note', $12::text::json),
           $13::text, $14::text, $15::text, moved.updated_at
      FROM moved
)
SELECT moved.status, moved.version, moved.data::text, moved.created_at, moved.updated_at FROM moved
