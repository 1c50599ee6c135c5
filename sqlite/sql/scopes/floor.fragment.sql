-- The version that a new scope begins with: above those of deleted tombstones of its kind, and above those that a restore has lost.
max(coalesce((SELECT f.version FROM holdfast_scope_floor AS f WHERE f.shard = :shard AND f.workspace = :workspace AND f.kind = :kind), 0),
                   coalesce((SELECT max(r.generation) FROM holdfast_restore AS r), 0) * 1048576)
