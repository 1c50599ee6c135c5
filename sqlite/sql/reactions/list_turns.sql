-- Lists the reactions and workspaces that have due streams.
{include lease/list_turns
    (SELECT f.workspace FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
      WHERE f.shard = :shard AND f.reaction = t.name AND f.workspace > t.workspace AND (:workspace = '' OR f.workspace = :workspace)
        AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
      ORDER BY f.workspace
      LIMIT 1);
    (SELECT {include reactions/is_due} FROM (SELECT :shard AS shard, t.name AS reaction, t.workspace AS workspace) AS a)}
