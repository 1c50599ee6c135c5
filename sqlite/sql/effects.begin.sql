-- Notes that an effect is about to be tried, under a hold that has not run out, and
-- with it the results of earlier ones. Answers how it stands: new, or what is known
-- of it. One that was tried and is known not to have happened is new again, unless
-- there is a later one of its name: then it is passed over, as it was then.
-- Its holder was heard of, except by a body: that is begun for who is handed it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 operation, ?7 epoch, ?8 name, ?9 ordinal, ?10 policy,
-- ?11 results, a JSON list of {n: name, o: ordinal, r: result}
-- do
UPDATE holdfast_entity AS e
   SET quiet = e.quiet AND ?8 = '$body', lost = CASE WHEN ?8 = '$body' THEN e.lost ELSE 0 END, begun = e.begun + NOT EXISTS (SELECT 1 FROM holdfast_effect AS x
                                      WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.name = ?8 AND x.ordinal = ?9
                                        AND (x.state <> 'notDone' OR EXISTS (
                                            SELECT 1 FROM holdfast_effect AS y
                                             WHERE y.shard = ?1 AND y.workspace = ?2 AND y.operation = ?6 AND y.name = ?8 AND y.ordinal > ?9)))
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND e.operation = ?6 AND e.epoch = ?7 AND e.phase = 'held' AND e.until > {now}
-- also
UPDATE holdfast_effect AS x
   SET state = 'done', ended_at = {now},
       result = (SELECT r.value -> 'r' FROM json_each(?11) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(?11) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
-- then
SELECT coalesce((SELECT x.state FROM holdfast_effect AS x
                  WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.name = ?8 AND x.ordinal = ?9
                    AND (x.state <> 'notDone' OR EXISTS (
                        SELECT 1 FROM holdfast_effect AS y
                         WHERE y.shard = ?1 AND y.workspace = ?2 AND y.operation = ?6 AND y.name = ?8 AND y.ordinal > ?9))), 'new'),
       coalesce((SELECT x.epoch FROM holdfast_effect AS x
                  WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.name = ?8 AND x.ordinal = ?9), 0),
       coalesce((SELECT x.policy FROM holdfast_effect AS x
                  WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.name = ?8 AND x.ordinal = ?9), ''),
       coalesce((SELECT x.result FROM holdfast_effect AS x
                  WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.name = ?8 AND x.ordinal = ?9), '')
-- also
INSERT INTO holdfast_effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT ?1, ?2, ?6, ?8, ?9, ?7, 'begun', ?10, {now} WHERE true
ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
   SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
 WHERE x.state = 'notDone'
   AND NOT EXISTS (SELECT 1 FROM holdfast_effect AS y
                    WHERE y.shard = ?1 AND y.workspace = ?2 AND y.operation = ?6 AND y.name = ?8 AND y.ordinal > ?9)
-- else
SELECT '', 0, '', ''
