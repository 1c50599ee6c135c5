-- The approval that a plan requests.
INSERT INTO holdfast_approval (shard, workspace, run, step, visit, prompt, requesters, status, expires_at, created_at)
SELECT :shard, :workspace, :run, :plan ->> '$.ask.step', :plan ->> '$.ask.visit', :plan ->> '$.ask.prompt', :plan -> '$.ask.requesters', 'pending',
       r.updated_at + (:plan ->> '$.ask.within'), r.updated_at
  {include runs/by_id} AND :plan ->> '$.ask.step' IS NOT NULL
