-- Inserts the steps that a plan adds; {1} is the time when they are due.
INSERT INTO holdfast_step
    (shard, workspace, run, name, visit, n, type, handler, status, input, output, error, next, attempts, failures, holder, epoch, until, deaths,
     timeout, taken_at, due_at, deadline, begun, uncertain, safety, unknown, signal, created_at, started_at, finished_at)
SELECT :shard, :workspace, :run, x.value ->> 'name', x.value ->> 'visit', x.value ->> 'n', x.value ->> 'type', x.value ->> 'handler', x.value ->> 'status',
       x.value -> 'input', x.value -> 'output', x.value ->> 'error', x.value ->> 'next', x.value ->> 'attempts', 0,
       CASE WHEN x.value ->> 'held' THEN :holder END, x.value ->> 'held',
       CASE WHEN x.value ->> 'held' THEN r.updated_at + min(:lease, x.value ->> 'timeout') END, 0,
       x.value ->> 'timeout', CASE WHEN x.value ->> 'held' THEN r.updated_at END,
       {1}, r.updated_at + (x.value ->> 'wait'), x.value ->> 'begun', 0, x.value ->> 'safety', x.value ->> 'unknown', x.value ->> 'signal', r.updated_at,
       CASE WHEN x.value ->> 'status' <> 'PENDING' THEN r.updated_at END, CASE WHEN x.value ->> 'over' THEN r.updated_at END
  FROM holdfast_run AS r JOIN json_each(:plan, '$.add') AS x
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
