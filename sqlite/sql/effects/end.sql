-- Records the outcome of an effect: done, with its result, or known not to have happened;
-- under a lease that has not expired or, by a person, while its operation is uncertain.
-- Returns the state of the effect afterwards, with its result. The fact that a repeated call
-- did not happen says nothing about the earlier call: such an effect stays begun, unless the
-- holder has asked the other side about it.
-- do
UPDATE holdfast_entity AS e
   SET begun = e.begun - (:state = 'notDone' AND EXISTS (SELECT 1 FROM holdfast_effect AS x
                                      WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal
                                        AND x.state = 'begun' AND (:person > 0 OR x.epoch = :epoch)))
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
   AND e.operation = :operation AND e.epoch = :epoch
   AND CASE WHEN :person = 1 THEN e.phase = 'uncertain' ELSE e.phase = 'held' AND e.until > {now} END
-- also
UPDATE holdfast_effect AS x
   SET state = :state, result = :result, ended_at = {now}
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal AND x.state = 'begun'
   AND (:state <> 'notDone' OR :person > 0 OR x.epoch = :epoch)
-- then
SELECT coalesce((SELECT x.state FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal), ''),
       coalesce((SELECT x.result FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.name = :name AND x.ordinal = :ordinal), '')
-- else
SELECT '', ''
