-- Moves a run by a plan, as runs.apply_plan, if the plan has no effects, signals or approvals, as
-- most plans do.
-- do
{include runs/update_run}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND r.version = :version AND :plan ->> '$.plain'
   AND EXISTS (SELECT 1 FROM holdfast_step AS s
                WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.epoch = :epoch
                  AND coalesce(s.begun = :plan ->> '$.saw.begun', 1) AND coalesce(coalesce(s.fired, '') = :plan ->> '$.saw.fired', 1)
                  AND CASE :how WHEN 'held' THEN s.until > {now} WHEN 'died' THEN s.until <= {now} WHEN 'due' THEN s.due_at <= {now} ELSE 1 END)
RETURNING version
-- also
{include runs/update_step}
-- also
{include runs/add_steps coalesce(x.value ->> 'at', r.updated_at + (x.value ->> 'due'))}
-- also
{include history/write}
{include runs/select_plan_events}
-- then
{include runs/select_current}
