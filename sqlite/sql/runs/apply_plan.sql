-- Moves a run by a plan, if the run is at the version of the plan and its step is as the
-- plan expects (:how): leased under an epoch and not expired ('held'), leased and expired
-- ('died'), due and not leased ('due'), or in any state (''). A plan that depends on the
-- effects begun or open, or on the operation fired (saw), is refused with the version -1 if
-- these have changed, because they do not change the run's version.
-- do
{include runs/update_run}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND r.version = :version
   AND EXISTS (SELECT 1 FROM holdfast_step AS s
                WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.epoch = :epoch
                  AND coalesce(s.begun = :plan ->> '$.saw.begun', 1) AND coalesce(coalesce(s.fired, '') = :plan ->> '$.saw.fired', 1)
                  AND (:plan ->> '$.saw.open' IS NULL OR :plan ->> '$.saw.open' = (
                       SELECT count(*) FROM holdfast_effect AS x
                        WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.state = 'begun'))
                  AND CASE :how WHEN 'held' THEN s.until > {now} WHEN 'died' THEN s.until <= {now} WHEN 'due' THEN s.due_at <= {now} ELSE 1 END)
RETURNING version
-- also
UPDATE holdfast_step AS s
   SET begun = s.begun - (SELECT count(*) FROM holdfast_effect AS x JOIN json_each(:plan, '$.results') AS e
                           WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit
                             AND x.name = e.value ->> 'n' AND x.ordinal = e.value ->> 'o' AND x.state = 'begun' AND e.value ->> 's' = 'notDone')
                       + (coalesce(:plan ->> '$.body.operation' = :run || '/' || :step || '/' || :visit, 0) AND NOT EXISTS (
                          SELECT 1 FROM holdfast_effect AS x
                           WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :plan ->> '$.body.operation' AND x.name = '$body' AND x.ordinal = 0 AND x.state <> 'notDone'))
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
   AND (json_array_length(:plan, '$.results') > 0 OR :plan ->> '$.body.operation' = :run || '/' || :step || '/' || :visit)
-- also
UPDATE holdfast_effect AS x
   SET state = (SELECT e.value ->> 's' FROM json_each(:plan, '$.results') AS e WHERE e.value ->> 'n' = x.name AND e.value ->> 'o' = x.ordinal),
       result = (SELECT e.value -> 'r' FROM json_each(:plan, '$.results') AS e WHERE e.value ->> 'n' = x.name AND e.value ->> 'o' = x.ordinal), ended_at = {now}
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(:plan, '$.results') AS e WHERE e.value ->> 'n' = x.name AND e.value ->> 'o' = x.ordinal)
-- also
{include runs/update_step}
-- also
{include runs/add_steps {include runs/step_due_at}}
-- also
{include runs/begin_body}
-- also
{include runs/add_approval}
-- also
UPDATE holdfast_approval AS a
   SET status = 'expired', decided_at = {now}
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.run = :run AND a.step = :step AND a.visit = :visit AND :plan ->> '$.lapse' AND a.status = 'pending'
-- also
UPDATE holdfast_signal AS g
   SET taken = :step || '/' || :visit
 WHERE g.shard = :shard AND g.workspace = :workspace AND g.run = :run AND g.id = :plan ->> '$.signal'
-- also
{include history/write}
{include runs/select_plan_events}
-- then
{include runs/select_current}
-- else
SELECT CASE WHEN EXISTS (SELECT 1 FROM holdfast_step AS s
                          WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
                            AND (s.begun <> :plan ->> '$.saw.begun' OR coalesce(s.fired, '') <> :plan ->> '$.saw.fired'
                                 OR :plan ->> '$.saw.open' <> (
                                    SELECT count(*) FROM holdfast_effect AS x
                                     WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.state = 'begun'))) THEN -1
            ELSE coalesce(r.version, -1) END, 0, {now}
  FROM (SELECT 1) LEFT JOIN holdfast_run AS r ON r.shard = :shard AND r.workspace = :workspace AND r.id = :run
