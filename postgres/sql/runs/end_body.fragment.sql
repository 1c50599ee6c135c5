-- Records that the body of the step that ends is done; {1} is the prefix of an argument name.
acted AS (
    UPDATE {schema}.effect x
       SET state = 'done', result = {1}output::json, ended_at = ok.now
      FROM ok
     WHERE x.shard = ANY (ARRAY[{1}shard]) AND x.workspace = {1}workspace AND x.operation = {1}run || '/' || {1}step || '/' || {1}visit::text AND x.name = '$body' AND x.ordinal = 0
       AND x.state = 'begun' AND {1}acted = 1
)
