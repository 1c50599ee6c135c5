-- Edits one scope that is alive, at the expected version if there is one, or does nothing
-- and returns nothing. A number of up to 18 digits stays within 64 bits when two of them are
-- added, so only those are added to here.
WITH moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, updated_at = {now}, expires_at = {now} + $11::bigint::float8 * interval '1 ms',
           state = CASE WHEN $6::text = 'inc' THEN s.state || pg_catalog.jsonb_build_object($7::text, (s.state ->> $7::text)::bigint + $9::text::bigint)
                        ELSE {schema}.scope_edit(s.state, $6::text, $7::text, $8::text, $9::text::jsonb) END
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.kind = $4::text AND s.id = $5::text
       AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
       AND ($10::bigint IS NULL OR s.version = $10)
       AND CASE WHEN $6::text <> 'inc' THEN {schema}.scope_edit(s.state, $6::text, $7::text, $8::text, $9::text::jsonb) <> s.state
                ELSE $9::text <> '0' AND pg_catalog.length($9::text) < 19 AND pg_catalog.octet_length(s.state::text) < 1048500
                     AND CASE WHEN pg_catalog.jsonb_typeof(s.state -> $7::text) = 'number' THEN s.state ->> $7::text ~ '^-?[0-9]{1,18}$' END END
       AND $15::bigint = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = $1 AND g.workspace = $2), 0)
       AND $16::text IS NULL
    RETURNING s.version, s.state, s.updated_at
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT $1, $3::uuid, 0, $2, '$scope/' || $4 || '/' || $5, moved.version, $6,
           pg_catalog.json_strip_nulls(pg_catalog.json_build_object('field', $7::text, 'key', $8::text,
               'by', CASE WHEN $6 = 'inc' THEN $9::text::json END, 'value', CASE WHEN $6 = 'inc' THEN moved.state -> $7::text END)),
           $12::text, $13::text, $14::text, moved.updated_at
      FROM moved
)
SELECT moved.version, moved.state::text, 1::bigint FROM moved
