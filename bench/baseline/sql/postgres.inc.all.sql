-- Adds to one number of one scope for several members, in their order.
-- $1 shard, $2 workspace, $3 kind, $4 scope, $5 field, $6 sum of all; a member:
-- $7 id of the event, $8 by
WITH moved AS (
    UPDATE {schema}.scope
       SET version = version + cardinality($7::uuid[]), updated_at = clock_timestamp(),
           state = state || jsonb_build_object($5::text, (state ->> $5::text)::bigint + $6::bigint)
     WHERE shard = $1::smallint AND workspace = $2::text AND kind = $3::text AND id = $4::text AND state ? $5
    RETURNING version, (state ->> $5)::bigint AS value, updated_at
), m AS (
    SELECT m.member, m.event, m.by,
           moved.version - cardinality($7::uuid[]) + m.member AS version,
           moved.value - $6 + sum(m.by) OVER (ORDER BY m.member) AS value, moved.updated_at
      FROM moved, unnest($7::uuid[], $8::bigint[]) WITH ORDINALITY AS m(event, by, member)
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, event, 0, $2, '$scope/' || $3 || '/' || $4, version, 'inc',
           json_build_object('field', $5, 'by', by, 'value', value), updated_at
      FROM m
)
SELECT member, value::bigint FROM m
