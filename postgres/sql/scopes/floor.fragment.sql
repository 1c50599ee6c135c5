-- The version that a new scope begins with: above those of deleted tombstones of its kind, and above those that a restore has lost.
SELECT greatest(coalesce((SELECT f.version FROM {schema}.scope_floor f
                                      WHERE f.shard = {1}.shard AND f.workspace = {1}.workspace AND f.kind = {1}.kind), 0),
                            coalesce((SELECT pg_catalog.max(r.generation) FROM {schema}.restore r), 0) * 1048576) AS version
