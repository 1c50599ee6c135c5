-- Deletes scopes, each if it is at the expected version. The row stays as a tombstone for a
-- day, so that no version is reused.
-- :want (NULL any, -2 some)
WITH {members}, cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, CASE WHEN s.expires_at IS NULL OR s.expires_at > {now} THEN s.state END AS state
      {include scopes/lock}
), moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, state = NULL, updated_at = {now}, expires_at = {now} + interval '1 day'
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope
       AND cur.state IS NOT NULL
       AND (m.want IS NULL OR m.want = -2 OR m.want = cur.version)
    RETURNING m.member, s.version, s.updated_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$scope/' || m.kind || '/' || m.scope, moved.version, 'deleted', '{}',
           m.correlation, m.causation, m.actor, moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1
            WHEN cur.id IS NULL AND (SELECT true FROM {schema}.scope s WHERE s.shard = m.shard AND s.workspace = m.workspace
                                                                            AND s.kind = m.kind AND s.id = m.scope LIMIT 1) IS NOT NULL THEN 2
            ELSE 0 END,
       coalesce(moved.version, CASE WHEN cur.state IS NOT NULL THEN cur.version END, -1),
       CASE WHEN moved.member IS NOT NULL THEN 'null' ELSE coalesce(cur.state, 'null')::text END
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
