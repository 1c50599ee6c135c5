-- Completes steps, like runs.finish_step, of runs that went through further steps before the record of the first: those begin
-- and complete in the same record, in their order. All of a member's steps are recorded, or none.
{include runs/finish_locked 1 + 2 * ok.passed; 2 + 2 * ok.passed; ok.at_step; ok.at_visit},
{include runs/add_passed_steps ok.; ok JOIN {children} ON c.owner = ok.member},
{include runs/begin_step ok.},
{include history/write_without_cause}
    {include runs/select_passed_events ok.; ok.version; ok JOIN {children} ON c.owner = ok.member}
    {due_notices}
{include runs/finish_result 1 + 2 * ok.passed; 2 + 2 * ok.passed}
