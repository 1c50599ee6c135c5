-- Inserts the effect for the body of the opaque step that begins; {1} is the prefix of an argument name.
body AS (
    INSERT INTO {schema}.effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
    SELECT {1}shard, {1}workspace, {1}run || '/' || {1}begin || '/' || {1}begin_visit::text, '$body', 0, 1, 'begun', {1}policy, ok.now
      FROM ok
     WHERE {1}policy IS NOT NULL
)
