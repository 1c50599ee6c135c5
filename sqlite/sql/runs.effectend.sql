-- Notes what became of an effect: done, with its result, or known not to have
-- happened; under a hold that has not run out or, by a person, while its operation
-- is uncertain. Answers how the effect stands then, with its result. That a repeated call did not happen
-- says nothing of the earlier one: such an effect stays begun, unless the other side was asked about it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run, ?5 step, ?6 visit, ?7 epoch, ?8 name, ?9 ordinal, ?10 state, ?11 result,
-- ?12 whose word it is: 0 a holder's, 1 a person's, 2 of a holder that asked the other side
-- do
UPDATE holdfast_step AS s
   SET begun = s.begun - (?10 = 'notDone' AND EXISTS (SELECT 1 FROM holdfast_effect AS x
                                      WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?5 || '/' || ?6 AND x.name = ?8 AND x.ordinal = ?9
                                        AND x.state = 'begun' AND (?12 > 0 OR x.epoch = ?7)))
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = ?5 AND s.visit = ?6 AND s.epoch = ?7
   AND CASE WHEN ?12 = 1 THEN s.uncertain ELSE s.until > {now} END
-- also
UPDATE holdfast_effect AS x
   SET state = ?10, result = ?11, ended_at = {now}
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?5 || '/' || ?6 AND x.name = ?8 AND x.ordinal = ?9 AND x.state = 'begun'
   AND (?10 <> 'notDone' OR ?12 > 0 OR x.epoch = ?7)
-- then
SELECT coalesce((SELECT x.state FROM holdfast_effect AS x
                  WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?5 || '/' || ?6 AND x.name = ?8 AND x.ordinal = ?9), ''),
       coalesce((SELECT x.result FROM holdfast_effect AS x
                  WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?5 || '/' || ?6 AND x.name = ?8 AND x.ordinal = ?9), '')
-- else
SELECT '', ''
