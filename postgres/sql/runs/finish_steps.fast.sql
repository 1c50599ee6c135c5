-- Completes steps of one run, like runs.finish_steps. If the run has moved, the lease is lost or a reaction follows the run,
-- does nothing and returns nothing. See runs.finish_step.fast.
{include runs/finish_one 1 + 2 * :passed; 2 + 2 * :passed; :at_step; :at_visit},
{include runs/add_passed_steps :; ok CROSS JOIN {children}},
{include runs/begin_step :},
{include history/write_without_cause}
    {include runs/select_passed_events :; :version; ok CROSS JOIN {children}}
)
SELECT ok.version, {include runs/begun_until :}, ok.now
  FROM ok
