-- Lists the workspaces that have items to clean up.
{include lease/list_turns
    (SELECT i.workspace FROM {schema}.item i
      WHERE i.shard + 0 = :shard AND i.workspace > t.workspace AND (:workspace = '' OR i.workspace = :workspace)
        AND i.sweep_at IS NOT NULL
      ORDER BY i.workspace
      LIMIT 1);
    (SELECT true FROM {schema}.item i
      WHERE i.shard + 0 = :shard AND i.workspace = t.workspace AND i.sweep_at <= (SELECT {now})
      ORDER BY i.sweep_at
      LIMIT 1)}
