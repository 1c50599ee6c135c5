-- Increments the revision of a workspace's registry, which makes every command with the old
-- one read the registry again. The row stays locked until the transaction ends, so that
-- registrations are serialized.
WITH {members}, raised AS (
    INSERT INTO {schema}.registry AS g (shard, workspace, revision)
    SELECT m.shard, m.workspace, 1 FROM m
    ON CONFLICT (shard, workspace) DO UPDATE SET revision = g.revision + 1
    RETURNING g.shard, g.workspace, g.revision
)
SELECT m.member, 1, raised.revision
  FROM m JOIN raised ON raised.shard = m.shard AND raised.workspace = m.workspace
