-- Completes a step under its lease, and begins the next step of the run or ends the run. runs.apply_plan does the same
-- with a plan.
{include runs/finish_one}
{include runs/finish_lost}
