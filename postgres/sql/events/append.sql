-- Appends events to streams, each if its head is the expected one. The stream rows are
-- locked first, in key order, so that a refused caller gets the current head even if it
-- lost by waiting for the lock. A stream is created only under an advisory lock on its
-- name, so that a group does not wait for an uncommitted insert of another transaction. A
-- closed stream accepts nothing; a stream whose closer crashed is reopened.
-- :want (NULL any, -1 none)
WITH {members}, cur AS (
    SELECT s.shard, s.workspace, s.name, s.head, s.state, s.until, m.member, m.command, m.want, m.size
      FROM m JOIN {schema}.stream s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.stream
     ORDER BY m.shard, s.workspace, s.name
       FOR UPDATE OF s{skip}
), moved AS (
    UPDATE {schema}.stream s
       SET head = cur.head + cur.size, state = 'open', holder = NULL, until = NULL
      FROM cur
     WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
       AND (cur.want IS NULL OR cur.want = cur.head)
       AND (cur.state = 'open' OR (cur.state = 'closing' AND cur.until <= {now}))
    RETURNING s.shard, s.workspace, s.name, s.head, cur.member, cur.command, cur.size, {now} AS at -- read after the lock
), gone AS MATERIALIZED (
    SELECT m.shard, m.workspace, m.stream, m.size
      FROM m
     WHERE (m.want IS NULL OR m.want = -1)
       AND CASE WHEN EXISTS (SELECT 1 FROM cur WHERE cur.member = m.member)
                  OR EXISTS (SELECT 1 FROM {schema}.stream s WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.stream)
                THEN false
                ELSE {enter}(pg_catalog.hashtextextended('stream/' || m.shard::text || '/' || m.workspace || '/' || m.stream, 0)){entered} END
), made AS (
    INSERT INTO {schema}.stream (shard, workspace, name, head)
    SELECT gone.shard, gone.workspace, gone.stream, gone.size - 1
      FROM gone
     ORDER BY gone.shard, gone.workspace, gone.stream
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING shard, workspace, name, head, {now} AS at
), won AS (
    SELECT moved.member, moved.shard, moved.workspace, moved.command, moved.name, moved.size, moved.head, moved.at FROM moved
    UNION ALL
    SELECT m.member, m.shard, m.workspace, m.command, m.stream, m.size, made.head, made.at
      FROM made JOIN m ON m.shard = made.shard AND m.workspace = made.workspace AND m.stream = made.name
), written AS (
    INSERT INTO {schema}.event
        (shard, id, n, workspace, stream, version, name, data, subject, correlation, causation, actor, at)
    SELECT won.shard, won.command, c.n, won.workspace, won.name, won.head - won.size + 1 + c.n,
           c.name, c.data::json, c.subject, c.correlation, c.causation, c.actor, won.at
      FROM won JOIN {children} ON c.owner = won.member
    {due_notices}
SELECT m.member,
       CASE WHEN won.member IS NOT NULL THEN 1
            WHEN cur.name IS NOT NULL THEN 0
            WHEN EXISTS (SELECT 1 FROM {schema}.stream s WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.stream) THEN 2
            WHEN m.want >= 0 THEN 0
            ELSE 2 END,
       coalesce(won.head, cur.head, -1),
       won.member IS NULL AND (coalesce(cur.state, 'open') = 'closed' OR (coalesce(cur.state, 'open') = 'closing' AND cur.until > {now})), coalesce(won.at, 'epoch')
  FROM m LEFT JOIN won ON won.member = m.member
  LEFT JOIN cur ON cur.member = m.member
