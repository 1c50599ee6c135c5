-- Completes a step, like runs.finish_step.fast, if the step that ends or the step that begins is opaque.
{include runs/finish_one 1; 2; :begin; :begin_visit},
{include runs/end_body :},
{include runs/begin_step_body :},
{include runs/finish_one_written}
