-- Starts runs, as runs.start_at_step, whose first step is opaque: its body is an effect, which
-- begins with it.
{include runs/start_members},
{include runs/begin_step_body ok.},
{include runs/start_written}
