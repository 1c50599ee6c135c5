-- Begins the next steps, writes the events and returns the results.
{include runs/begin_step ok.},
{include history/write_without_cause}
    {include runs/select_step_events ok.; ok.version}
    {due_notices}
{include runs/finish_result 1; 2}
