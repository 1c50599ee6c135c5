-- Starts a run, as runs.start_at_step.fast, whose first step is opaque.
{include runs/start_one},
{include runs/begin_step_body :},
{include runs/start_one_written}
