-- Adds to a whole number that one scope has, or does nothing and returns
-- nothing. A number of up to 18 digits stays within 64 bits when two of them
-- are added, so only those are taken here.
WITH moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, updated_at = {now},
           state = s.state || jsonb_build_object($6::text, (s.state ->> $6::text)::bigint + $7::bigint)
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.kind = $4::text AND s.id = $5::text
       AND CASE WHEN jsonb_typeof(s.state -> $6::text) = 'number' THEN s.state ->> $6::text ~ '^-?[0-9]{1,18}$' END
       AND $7::bigint BETWEEN -999999999999999999 AND 999999999999999999
       AND $11::bigint = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = $1 AND g.workspace = $2), 0)
       AND $12::text IS NULL
    RETURNING s.version, s.state, s.updated_at
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT $1, $3::uuid, 0, $2, '$scope/' || $4 || '/' || $5, moved.version, 'inc',
           json_build_object('field', $6::text, 'by', $7::bigint, 'value', moved.state -> $6::text),
           $8::text, $9::text, $10::text, moved.updated_at
      FROM moved
)
SELECT moved.version, moved.state::text, (moved.state ->> $6::text)::bigint FROM moved
