-- Returns the version of the run that was not moved.

-- else
SELECT coalesce((SELECT r.version FROM holdfast_run AS r WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run), -1), 0, {now}
