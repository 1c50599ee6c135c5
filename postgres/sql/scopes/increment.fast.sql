-- Adds to an integer field of one existing scope, or does nothing and returns nothing. The sum of
-- an amount and a number of up to 18 digits fits into 64 bits.
WITH moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, updated_at = {now}, expires_at = {now} + :ttl::float8 * interval '1 ms',
           state = s.state || pg_catalog.jsonb_build_object(:field, (s.state ->> :field)::bigint + :amount)
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
       AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now}) AND pg_catalog.octet_length(s.state::text) < 1048500
       AND CASE WHEN pg_catalog.jsonb_typeof(s.state -> :field) = 'number' THEN s.state ->> :field ~ '^-?[0-9]{1,18}$' END
       AND {include registry/is_current}
    RETURNING s.version, s.state, s.updated_at
), {include history/write}
    SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, moved.version, 'inc',
           {include scopes/increment_data :field; :amount; (moved.state ->> :field)}, :correlation, :causation, :actor, moved.updated_at
      FROM moved
)
SELECT moved.version, moved.state::text, 1::bigint FROM moved
