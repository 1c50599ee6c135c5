-- Lists the workspaces that have items to clean up.
{include lease/list_turns
    (SELECT i.workspace FROM holdfast_item AS i INDEXED BY holdfast_item_turn
      WHERE i.shard = :shard AND i.workspace > t.workspace AND (:workspace = '' OR i.workspace = :workspace)
        AND i.sweep_at IS NOT NULL
      ORDER BY i.workspace
      LIMIT 1);
    EXISTS (SELECT 1 FROM holdfast_item AS i INDEXED BY holdfast_item_turn
             WHERE i.shard = :shard AND i.workspace = t.workspace AND i.sweep_at IS NOT NULL AND i.sweep_at <= {now})}
