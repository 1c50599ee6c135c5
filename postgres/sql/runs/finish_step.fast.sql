-- Completes a step, like runs.finish_step. If the run has moved, the lease is lost or a reaction follows the run, does
-- nothing and returns nothing. The epoch of the step changes only together with the version of the run, and a renewal
-- only postpones the expiry of the lease. Therefore the values of the step that are read here are still valid after the
-- statement has waited for the run.
{include runs/finish_one 1; 2; :begin; :begin_visit},
{include runs/finish_one_written}
