-- Records that an effect is about to be attempted, under a lease that has not expired, with
-- the results of earlier effects. Returns its state: new, or what the journal has. An effect
-- that was attempted and is known not to have happened is new again, unless a later effect
-- of the same name exists: then it is skipped, as it was before. The call counts as a report
-- of the holder, except for a body, which is begun on behalf of the worker that gets the
-- task.
-- do
UPDATE holdfast_entity AS e
   SET quiet = e.quiet AND :name = '$body', lost = CASE WHEN :name = '$body' THEN e.lost ELSE 0 END, begun = e.begun + NOT EXISTS (SELECT 1 FROM holdfast_effect AS x
                                      WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal
                                        AND (x.state <> 'notDone' OR EXISTS (
                                            SELECT 1 FROM holdfast_effect AS y
                                             WHERE y.shard = :shard AND y.workspace = :workspace AND y.operation = :operation AND y.name = :name AND y.ordinal > :ordinal)))
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
   AND e.operation = :operation AND e.epoch = :epoch AND e.phase = 'held' AND e.until > {now}
-- also
UPDATE holdfast_effect AS x
   SET state = 'done', ended_at = {now},
       result = (SELECT r.value -> 'r' FROM json_each(:results) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(:results) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
-- then
SELECT coalesce((SELECT x.state FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal
                    AND (x.state <> 'notDone' OR EXISTS (
                        SELECT 1 FROM holdfast_effect AS y
                         WHERE y.shard = :shard AND y.workspace = :workspace AND y.operation = :operation AND y.name = :name AND y.ordinal > :ordinal))), 'new'),
       coalesce((SELECT x.epoch FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal), 0),
       coalesce((SELECT x.policy FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal), ''),
       coalesce((SELECT x.result FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal), '')
-- also
INSERT INTO holdfast_effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT :shard, :workspace, :operation, :name, :ordinal, :epoch, 'begun', :policy, {now} WHERE true
ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
   SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
 WHERE x.state = 'notDone'
   AND NOT EXISTS (SELECT 1 FROM holdfast_effect AS y
                    WHERE y.shard = :shard AND y.workspace = :workspace AND y.operation = :operation AND y.name = :name AND y.ordinal > :ordinal)
-- else
SELECT '', 0, '', ''
