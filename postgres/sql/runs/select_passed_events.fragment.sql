-- The events of a record of several steps, with the versions after {2}: the end of the first step, the start and the end of
-- each step of {3}, and the start of the next step or the end of the run. {1} is the prefix of an argument name.
SELECT {1}shard, {1}command, e.n, {1}workspace, '$run/' || {1}run, {2} + 1 + e.n, e.name, e.data::json, ok.now
  FROM ok CROSS JOIN LATERAL (VALUES (0::bigint, {1}event, {1}data), (1 + 2 * {1}passed, {1}then_event, {1}then_data)) AS e(n, name, data)
 WHERE e.name IS NOT NULL
 UNION ALL
SELECT {1}shard, {1}command, 1 + 2 * c.nth + e.n, {1}workspace, '$run/' || {1}run, {2} + 2 + 2 * c.nth + e.n, e.name, e.data::json, ok.now
  FROM {3}
 CROSS JOIN LATERAL (VALUES (0, 'stepStarted', c.p_began), (1, 'stepCompleted', c.p_ended)) AS e(n, name, data)
