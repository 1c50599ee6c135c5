-- Starts runs at their first step. runs.start does the same with a plan. If a run with the key exists, returns that run,
-- or nothing if that run was created just now and is not visible yet.
{include runs/start_members},
{include runs/start_written}
