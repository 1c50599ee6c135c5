-- Inserts the step that begins, either leased by its holder or due, at the time {1}.
INSERT INTO holdfast_step
    (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths,
     timeout, taken_at, due_at, begun, uncertain, safety, unknown, created_at, started_at)
SELECT :shard, :workspace, :run, :begin, :begin_visit, :n, :type, :handler, CASE :held WHEN 1 THEN 'RUNNING' ELSE 'PENDING' END, :begin_input,
       :held, 0, CASE :held WHEN 1 THEN :holder END, :held, CASE :held WHEN 1 THEN {1} + min(:lease, :timeout) END, 0,
       :timeout, CASE :held WHEN 1 THEN {1} END, CASE :held WHEN 0 THEN {1} END, :policy IS NOT NULL, 0, :safety, :unknown, {1}, CASE :held WHEN 1 THEN {1} END
 WHERE :begin IS NOT NULL
