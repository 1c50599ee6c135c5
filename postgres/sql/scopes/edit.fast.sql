-- Edits one existing scope, at the expected version if there is one, or does nothing and
-- returns nothing. The sum of two numbers of up to 18 digits fits into 64 bits, so only such
-- numbers are added here.
WITH moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, updated_at = {now}, expires_at = {now} + :ttl::float8 * interval '1 ms',
           state = CASE WHEN :op = 'inc' THEN s.state || pg_catalog.jsonb_build_object(:field, (s.state ->> :field)::bigint + :value::bigint)
                        ELSE {schema}.scope_edit(s.state, :op, :field, :key, :value::jsonb) END
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
       AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
       AND (:want IS NULL OR s.version = :want)
       AND CASE WHEN :op <> 'inc' THEN {schema}.scope_edit(s.state, :op, :field, :key, :value::jsonb) <> s.state
                ELSE :value <> '0' AND pg_catalog.length(:value) < 19 AND pg_catalog.octet_length(s.state::text) < 1048500
                     AND CASE WHEN pg_catalog.jsonb_typeof(s.state -> :field) = 'number' THEN s.state ->> :field ~ '^-?[0-9]{1,18}$' END END
       AND {include registry/is_current}
    RETURNING s.version, s.state, s.updated_at
), {include history/write}
    SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, moved.version, :op,
           {include scopes/edit_data :op; :field; :key; :value; moved.state -> :field; ''},
           :correlation, :causation, :actor, moved.updated_at
      FROM moved
)
SELECT moved.version, moved.state::text, 1::bigint FROM moved
