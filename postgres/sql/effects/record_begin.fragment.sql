-- Records the results of earlier effects, and the effect that is about to be attempted.
results AS (
    UPDATE {schema}.effect x
       SET state = 'done', result = (r.item -> 'r'::text)::text::json, ended_at = {now}
      FROM held CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(held.results::jsonb) AS r(item)
     WHERE x.shard = ANY (ARRAY[held.shard]) AND x.workspace = held.workspace AND x.operation = held.operation
       AND x.name = r.item ->> 'n'::text AND x.ordinal = (r.item ->> 'o'::text)::integer AND x.state = 'begun'
), put AS (
    INSERT INTO {schema}.effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
    SELECT held.shard, held.workspace, held.operation, held.name, held.ordinal, held.epoch, 'begun', held.policy, {now} FROM held
    ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
       SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
     WHERE x.state = 'notDone'
       AND NOT EXISTS (SELECT 1 FROM {schema}.effect y WHERE y.shard = ANY (ARRAY[x.shard]) AND y.workspace = x.workspace AND y.operation = x.operation
                                                         AND y.name = x.name AND y.ordinal > x.ordinal)
    RETURNING x.shard, x.workspace, x.operation, x.name, x.ordinal
)
