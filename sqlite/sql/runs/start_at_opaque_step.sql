-- Starts a run whose first step is opaque, like runs.start_at_step.
{include runs/start_one}
-- also
{include runs/begin_step_body :did4}
{include runs/start_lost}
