-- As effects.begin, for a step.
-- do
UPDATE holdfast_step AS s
   SET quiet = s.quiet AND :name = '$body', lost = CASE WHEN :name = '$body' THEN s.lost ELSE 0 END, begun = s.begun + NOT EXISTS (SELECT 1 FROM holdfast_effect AS x
                                      WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal
                                        AND (x.state <> 'notDone' OR EXISTS (
                                            SELECT 1 FROM holdfast_effect AS y
                                             WHERE y.shard = :shard AND y.workspace = :workspace AND y.operation = :run || '/' || :step || '/' || :visit AND y.name = :name AND y.ordinal > :ordinal)))
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.epoch = :epoch AND s.until > {now}
-- also
UPDATE holdfast_effect AS x
   SET state = 'done', ended_at = {now},
       result = (SELECT r.value -> 'r' FROM json_each(:results) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(:results) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
-- then
SELECT coalesce((SELECT x.state FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal
                    AND (x.state <> 'notDone' OR EXISTS (
                        SELECT 1 FROM holdfast_effect AS y
                         WHERE y.shard = :shard AND y.workspace = :workspace AND y.operation = :run || '/' || :step || '/' || :visit AND y.name = :name AND y.ordinal > :ordinal))), 'new'),
       coalesce((SELECT x.epoch FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal), 0),
       coalesce((SELECT x.policy FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal), ''),
       coalesce((SELECT x.result FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal), '')
-- also
INSERT INTO holdfast_effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT :shard, :workspace, :run || '/' || :step || '/' || :visit, :name, :ordinal, :epoch, 'begun', :policy, {now} WHERE true
ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
   SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
 WHERE x.state = 'notDone'
   AND NOT EXISTS (SELECT 1 FROM holdfast_effect AS y
                    WHERE y.shard = :shard AND y.workspace = :workspace AND y.operation = :run || '/' || :step || '/' || :visit AND y.name = :name AND y.ordinal > :ordinal)
-- else
SELECT '', 0, '', ''
