-- Selects the run.
FROM holdfast_run AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
