-- Completes a step, as runs.finish_step.fast, where the step that ends or the one that begins is
-- opaque.
{include runs/finish_one},
{include runs/end_body :},
{include runs/begin_step_body :},
{include runs/finish_one_written}
