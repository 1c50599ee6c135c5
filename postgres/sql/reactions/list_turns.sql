-- Lists the reactions and workspaces that have work: due notices, or due streams.
{include lease/list_turns least(
           (SELECT f.workspace FROM {schema}.follow f
             WHERE f.shard = :shard AND f.reaction = t.name AND f.workspace > t.workspace AND (:workspace = '' OR f.workspace = :workspace)
               AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark
             ORDER BY f.workspace
             LIMIT 1),
           (SELECT x.workspace FROM {schema}.due x
             WHERE x.shard = :shard AND x.reaction = t.name AND x.workspace > t.workspace AND (:workspace = '' OR x.workspace = :workspace)
             ORDER BY x.workspace
             LIMIT 1));
    coalesce((SELECT true FROM {schema}.due x WHERE x.shard = :shard AND x.reaction = t.name AND x.workspace = t.workspace LIMIT 1),
             (SELECT {include reactions/is_due}
                FROM (SELECT :shard AS shard, t.name AS reaction, t.workspace, {now} AS now OFFSET 0) AS a))}
