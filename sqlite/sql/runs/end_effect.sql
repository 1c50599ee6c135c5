-- As effects.end, for a step.
-- do
UPDATE holdfast_step AS s
   SET begun = s.begun - (:state = 'notDone' AND EXISTS (SELECT 1 FROM holdfast_effect AS x
                                      WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal
                                        AND x.state = 'begun' AND (:person > 0 OR x.epoch = :epoch)))
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.epoch = :epoch
   AND CASE WHEN :person = 1 THEN s.uncertain ELSE s.until > {now} END
-- also
UPDATE holdfast_effect AS x
   SET state = :state, result = :result, ended_at = {now}
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal AND x.state = 'begun'
   AND (:state <> 'notDone' OR :person > 0 OR x.epoch = :epoch)
-- then
SELECT coalesce((SELECT x.state FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal), ''),
       coalesce((SELECT x.result FROM holdfast_effect AS x
                  WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = :name AND x.ordinal = :ordinal), '')
-- else
SELECT '', ''
