-- Sets a lifecycle's config, if it is at the revision that is expected (0: there is
-- none), and adds one to that.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 expected, ?6 statuses, ?7 config, ?8 wanted, ?9 origin, ?10 claims
-- do
INSERT INTO holdfast_lifecycle AS l (shard, workspace, name, revision, statuses, config, wanted, origin, claims, updated_at)
SELECT ?1, ?2, ?4, ?5 + 1, ?6, ?7, ?8, ?9, ?10, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE ?5 = 0 OR EXISTS (SELECT 1 FROM holdfast_lifecycle AS o WHERE o.shard = ?1 AND o.workspace = ?2 AND o.name = ?4)
ON CONFLICT (shard, workspace, name) DO UPDATE
   SET revision = excluded.revision, statuses = excluded.statuses, config = excluded.config, wanted = excluded.wanted, claims = excluded.claims,
       updated_at = excluded.updated_at
 WHERE l.revision = excluded.revision - 1 AND l.origin = excluded.origin
RETURNING revision
-- else
SELECT 0
