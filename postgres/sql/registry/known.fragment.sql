-- Whether a lone caller goes by the registry as it is, and no reaction wants what it writes.
:revision = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = :shard AND g.workspace = :workspace), 0)
       AND :marks IS NULL
