-- Starts a run at its first step. runs.start does the same with a plan. If a run with the key exists, returns that run.
{include runs/start_one}
{include runs/start_lost}
