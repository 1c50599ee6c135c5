-- The one or two events of a step that begins or ends, with the versions after {1}, at the time {2}.
SELECT :shard, :command, 0, :workspace, '$run/' || :run, {1} + 1, :event, :data, NULL, NULL, NULL, {2}
 UNION ALL
SELECT :shard, :command, 1, :workspace, '$run/' || :run, {1} + 2, :then_event, :then_data, NULL, NULL, NULL, {2}
 WHERE :then_event IS NOT NULL
