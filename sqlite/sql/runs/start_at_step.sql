-- Starts a run at its first step, as runs.start does by a plan, unless one exists under the key:
-- then returns that one.
{include runs/start_one}
{include runs/start_lost}
