-- Completes a step, like runs.finish_step, if the step that ends or the step that begins is opaque.
{include runs/finish_one}
-- also
UPDATE holdfast_effect AS x
   SET state = 'done', result = :output, ended_at = :did3
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :run || '/' || :step || '/' || :visit AND x.name = '$body' AND x.ordinal = 0
   AND x.state = 'begun' AND :acted = 1
-- also
{include runs/begin_step_body :did3}
{include runs/finish_lost}
