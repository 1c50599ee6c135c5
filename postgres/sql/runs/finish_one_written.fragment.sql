-- Begins the next step, writes the events and returns the result.
{include runs/begin_step :},
{include history/write_without_cause}
    {include runs/select_step_events :; :version}
)
SELECT ok.version, {include runs/begun_until :}, ok.now
  FROM ok
