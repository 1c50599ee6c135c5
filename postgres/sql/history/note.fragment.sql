-- Begins the part that writes history which nobody outside has caused: a SELECT follows, and {mark} ends it.
written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
