-- Completes a step under its lease, and begins the next step of the run or ends the run, as
-- runs.apply_plan does by a plan.
{include runs/finish_one}
{include runs/finish_lost}
