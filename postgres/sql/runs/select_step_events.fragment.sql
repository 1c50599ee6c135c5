-- The one or two events of a step that begins or ends, with the versions after {2}; {1} is the prefix of an argument name.
SELECT {1}shard, {1}command, e.n, {1}workspace, '$run/' || {1}run, {2} + 1 + e.n, e.name, e.data::json, ok.now
  FROM ok CROSS JOIN LATERAL (VALUES (0, {1}event, {1}data), (1, {1}then_event, {1}then_data)) AS e(n, name, data)
 WHERE e.name IS NOT NULL
