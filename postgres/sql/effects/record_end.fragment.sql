-- Records the outcome of the effect; {1} is the key of its owner.
put AS (
    UPDATE {schema}.effect x
       SET state = held.state, result = held.result::json, ended_at = {now}
      FROM held
     WHERE x.shard = ANY (ARRAY[held.shard]) AND x.workspace = held.workspace AND x.operation = held.operation AND x.name = held.name
       AND x.ordinal = held.ordinal AND x.state = 'begun'
       AND (held.state <> 'notDone' OR held.person > 0 OR x.epoch = held.under)
    RETURNING held.member, held.shard, held.workspace, {1}, x.state, x.result
)
