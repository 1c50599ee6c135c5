-- Starts a run, as runs.start_at_step, whose first step is opaque.
{include runs/start_one}
-- also
{include runs/begin_step_body :did4}
{include runs/start_lost}
