-- Completes steps under their leases, and begins the next step of each run or ends the run. runs.apply_plan does the
-- same with a plan. Locks the run and then the step, and reads the time afterwards: a holder whose lease expired while
-- it waited has lost the lease.
{include runs/finish_locked 1; 2; ok.begin; ok.begin_visit},
{include runs/finish_written}
