-- Begins the statement that writes history: a SELECT follows.
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
