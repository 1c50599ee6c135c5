-- True if a single caller has the current revision of the registry, and no reaction follows what it writes.
:revision = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = :shard AND g.workspace = :workspace), 0)
       AND :marks IS NULL
