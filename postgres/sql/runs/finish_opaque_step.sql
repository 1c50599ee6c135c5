-- Completes steps, as runs.finish_step, where the step that ends or the one that begins is opaque:
-- its body is an effect, which ends or begins with it.
{include runs/finish_locked},
{include runs/end_body ok.},
{include runs/begin_step_body ok.},
{include runs/finish_written}
