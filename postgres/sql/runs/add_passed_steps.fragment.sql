-- Inserts the steps that begin and complete in the same record; {1} is the prefix of an argument name, {2} their rows.
gone AS (
    INSERT INTO {schema}.step
        (shard, workspace, run, name, visit, n, type, handler, status, input, output, next, attempts, failures, epoch, deaths,
         timeout, taken_at, begun, uncertain, safety, unknown, created_at, started_at, finished_at)
    SELECT {1}shard, {1}workspace, {1}run, c.p_name, c.p_visit, c.p_n, c.p_type, c.p_handler, 'COMPLETED', c.p_input::json, c.p_output::json, c.p_next, 1, 0, 1, 0,
           c.p_timeout, ok.now, 0, false, c.p_safety, c.p_unknown, ok.now, ok.now, ok.now
      FROM {2}
)
