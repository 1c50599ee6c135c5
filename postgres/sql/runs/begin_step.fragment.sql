-- Inserts the step that begins, either leased by its holder or due; {1} is the prefix of an argument name.
begun AS (
    INSERT INTO {schema}.step
        (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths,
         timeout, taken_at, due_at, begun, uncertain, safety, unknown, created_at, started_at)
    SELECT {1}shard, {1}workspace, {1}run, {1}begin, {1}begin_visit, {1}n, {1}type, {1}handler, CASE {1}held WHEN 1 THEN 'RUNNING' ELSE 'PENDING' END, {1}begin_input::json,
           {1}held, 0, CASE {1}held WHEN 1 THEN {1}holder END, {1}held, CASE {1}held WHEN 1 THEN ok.now + least({1}lease, {1}timeout)::float8 * interval '1 ms' END, 0,
           {1}timeout, CASE {1}held WHEN 1 THEN ok.now END, CASE {1}held WHEN 0 THEN ok.now END, CASE WHEN {1}policy IS NULL THEN 0 ELSE 1 END, false, {1}safety, {1}unknown, ok.now, CASE {1}held WHEN 1 THEN ok.now END
      FROM ok
     WHERE {1}begin IS NOT NULL
)
