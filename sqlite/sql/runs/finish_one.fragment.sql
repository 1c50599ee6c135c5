-- Completes a step under its lease, moves its run, begins the next step and writes the events.
{include runs/finish_moved 1; :begin; :begin_visit}
-- also
{include history/write}
{include runs/select_step_events :version; :did3}
