-- Starts a run at its first step, like runs.start_at_step, if no run has the key and no reaction follows the run.
-- Otherwise does nothing and returns nothing.
{include runs/start_one},
{include runs/start_one_written}
