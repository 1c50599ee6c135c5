-- Begins the CTE that writes history without an external cause: a SELECT follows, and {due_notices} ends it.
written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
