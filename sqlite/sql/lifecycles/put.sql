-- Stores a lifecycle's config, if it is at the expected revision (0: it does not exist), and increments the revision.
-- do
INSERT INTO holdfast_lifecycle AS l (shard, workspace, name, revision, statuses, config, wanted, origin, claims, updated_at)
SELECT :shard, :workspace, :name, :expected + 1, :statuses, :config, :wanted, :origin, :claims, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE :expected = 0 OR EXISTS (SELECT 1 FROM holdfast_lifecycle AS o WHERE o.shard = :shard AND o.workspace = :workspace AND o.name = :name)
ON CONFLICT (shard, workspace, name) DO UPDATE
   SET revision = excluded.revision, statuses = excluded.statuses, config = excluded.config, wanted = excluded.wanted, claims = excluded.claims,
       updated_at = excluded.updated_at
 WHERE l.revision = excluded.revision - 1 AND l.origin = excluded.origin
RETURNING revision
-- else
SELECT 0
