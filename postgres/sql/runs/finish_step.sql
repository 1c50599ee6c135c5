-- Completes steps under their leases, and begins the next step of each run or ends the run, as
-- runs.apply_plan does by a plan. Locks run and step, in this order, and reads the time
-- afterwards: a holder that waited past its expiry has lost the lease.
{include runs/finish_locked},
{include runs/finish_written}
