-- Starts a run at its first step, as runs.start_at_step, if no run exists under the key and no
-- reaction follows the run; otherwise does nothing and returns nothing.
{include runs/start_one},
{include runs/start_one_written}
