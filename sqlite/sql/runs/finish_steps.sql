-- Completes a step, like runs.finish_step, of a run that went through further steps before the record of the first: those
-- begin and complete in the same record.
{include runs/finish_moved 1 + 2 * :passed; :at_step; :at_visit}
-- each
INSERT INTO holdfast_step
    (shard, workspace, run, name, visit, n, type, handler, status, input, output, next, attempts, failures, epoch, deaths,
     timeout, taken_at, begun, uncertain, safety, unknown, created_at, started_at, finished_at)
SELECT :shard, :workspace, :run, :p_name, :p_visit, :p_n, :p_type, :p_handler, 'COMPLETED', :p_input, :p_output, :p_next, 1, 0, 1, 0,
       :p_timeout, :did3, 0, 0, :p_safety, :p_unknown, :did3, :did3, :did3
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$run/' || :run, :version + 1, :event, :data, NULL, NULL, NULL, :did3
-- each
{include history/write}
SELECT :shard, :command, 1 + 2 * :nth, :workspace, '$run/' || :run, :version + 2 + 2 * :nth, 'stepStarted', :p_began, NULL, NULL, NULL, :did3
-- each
{include history/write}
SELECT :shard, :command, 2 + 2 * :nth, :workspace, '$run/' || :run, :version + 3 + 2 * :nth, 'stepCompleted', :p_ended, NULL, NULL, NULL, :did3
-- also
{include history/write}
SELECT :shard, :command, 1 + 2 * :passed, :workspace, '$run/' || :run, :version + 2 + 2 * :passed, :then_event, :then_data, NULL, NULL, NULL, :did3
 WHERE :then_event IS NOT NULL
{include runs/finish_lost}
