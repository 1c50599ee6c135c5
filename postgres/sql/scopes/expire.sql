-- Turns expired scopes into tombstones, each if it is still at the version that was seen.
WITH {members}, {include store/time}, cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, s.state, s.expires_at
      {include scopes/lock}
), moved AS (
    UPDATE {schema}.scope s
       SET version = s.version + 1, state = NULL, updated_at = t.now, expires_at = t.now + interval '1 day'
      FROM t, m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope
       AND cur.version = m.version AND cur.state IS NOT NULL AND cur.expires_at <= t.now
    RETURNING m.member, s.version, s.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$scope/' || m.kind || '/' || m.scope, moved.version, 'expired', '{}', moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member,
       CASE WHEN moved.member IS NOT NULL THEN 1
            WHEN cur.id IS NULL AND (SELECT true FROM {schema}.scope s WHERE s.shard = m.shard AND s.workspace = m.workspace
                                                                            AND s.kind = m.kind AND s.id = m.scope LIMIT 1) IS NOT NULL THEN 2
            ELSE 0 END,
       coalesce(moved.version, -1)
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
