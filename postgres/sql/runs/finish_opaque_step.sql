-- Completes steps, like runs.finish_step, if the step that ends or the step that begins is opaque. The body of an
-- opaque step is an effect, which begins and ends together with the step.
{include runs/finish_locked 1; 2; ok.begin; ok.begin_visit},
{include runs/end_body ok.},
{include runs/begin_step_body ok.},
{include runs/finish_written}
