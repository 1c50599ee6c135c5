-- Stores a lifecycle's config, if it is at the expected revision (0: it does not exist),
-- and increments the revision.
WITH {members}, put AS (
    INSERT INTO {schema}.lifecycle AS l (shard, workspace, name, revision, statuses, config, wanted, origin, claims, updated_at)
    SELECT m.shard, m.workspace, m.name, m.expected + 1, m.statuses::json, m.config, m.wanted::json, m.origin, m.claims::json, {now}
      FROM m
     WHERE m.expected = 0 OR EXISTS (SELECT 1 FROM {schema}.lifecycle o WHERE o.shard = ANY (ARRAY[m.shard]) AND o.workspace = m.workspace AND o.name = m.name)
    ON CONFLICT (shard, workspace, name) DO UPDATE
       SET revision = excluded.revision, statuses = excluded.statuses, config = excluded.config, wanted = excluded.wanted, claims = excluded.claims,
           updated_at = excluded.updated_at
     WHERE l.revision = excluded.revision - 1 AND l.origin = excluded.origin
    RETURNING l.shard, l.workspace, l.name, l.revision
)
SELECT m.member, CASE WHEN put.name IS NULL THEN 0 ELSE 1 END, coalesce(put.revision, 0)
  FROM m LEFT JOIN put ON put.shard = m.shard AND put.workspace = m.workspace AND put.name = m.name
