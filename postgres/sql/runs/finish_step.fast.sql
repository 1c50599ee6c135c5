-- Completes a step, as runs.finish_step, if no reaction follows the run; does nothing and returns
-- nothing if the run has moved, if the lease is lost or if a reaction follows. The step's epoch
-- changes only together with the run's version, and a renewal only postpones its expiry, so what
-- is read here of the step holds after a wait for the run.
{include runs/finish_one},
{include runs/finish_one_written}
