-- Lists the reactions and workspaces that may have work: due notices, or due streams.
{include lease/list_turns least(
           (SELECT f.workspace FROM {schema}.follow f
             WHERE f.shard = :shard AND f.reaction = t.name AND f.workspace > t.workspace AND (:workspace = '' OR f.workspace = :workspace)
               AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= (SELECT {now})
             ORDER BY f.workspace
             LIMIT 1),
           (SELECT x.workspace FROM {schema}.due x
             WHERE x.shard = :shard AND x.reaction = t.name AND x.workspace > t.workspace AND (:workspace = '' OR x.workspace = :workspace)
             ORDER BY x.workspace
             LIMIT 1))}
