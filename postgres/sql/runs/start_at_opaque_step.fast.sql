-- Starts a run whose first step is opaque, like runs.start_at_step.fast.
{include runs/start_one},
{include runs/begin_step_body :},
{include runs/start_one_written}
