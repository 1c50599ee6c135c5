-- Lists the reactions and workspaces that have due streams.
{include lease/list_turns
    (SELECT f.workspace FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
     WHERE f.shard = :shard AND f.reaction = t.name AND f.workspace > t.workspace AND (:workspace = '' OR f.workspace = :workspace)
       AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now}
     ORDER BY f.workspace
     LIMIT 1)}
