-- The run of a step, and the signal or approval that the step waits for.
CROSS JOIN LATERAL (
       SELECT r.* FROM {schema}.run r
        WHERE r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
        LIMIT 1) AS r
{include runs/join_inbox}
