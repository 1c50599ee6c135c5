-- Starts runs whose first step is opaque, like runs.start_at_step. The body of an opaque step is an effect, which begins
-- together with the step.
{include runs/start_members},
{include runs/begin_step_body ok.},
{include runs/start_written}
