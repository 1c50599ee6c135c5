-- Returns the current position of the run.
SELECT r.version, coalesce((SELECT s.until FROM holdfast_step AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = r.step AND s.visit = r.visit), 0), r.updated_at
  {include runs/by_id}
