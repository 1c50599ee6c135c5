-- Starts runs at their first step, as runs.start does by a plan: unless one exists under the key;
-- then returns that one, or nothing if it was created just now and is not visible yet.
{include runs/start_members},
{include runs/start_written}
