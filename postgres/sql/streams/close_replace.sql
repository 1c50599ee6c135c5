-- Replaces the events of streams with one event: a tombstone, which closes the stream, or a
-- snapshot, with which the stream continues. Runs under the epoch of the closer or, without
-- one, while the stream is open, which increments the epoch. The earlier events are only
-- removed by version here; they are deleted later.
-- :epoch (NULL none)
WITH {members}, cur AS (
    SELECT s.shard, s.workspace, s.name, s.head, s.state, s.epoch, s.until, m.member
      FROM m JOIN {schema}.stream s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.stream
     ORDER BY m.shard, s.workspace, s.name
       FOR UPDATE OF s
), moved AS (
    UPDATE {schema}.stream s
       SET head = cur.head + 1, first = cur.head + 1, holder = NULL, until = NULL,
           epoch = coalesce(m.epoch, cur.epoch + 1),
           state = CASE m.mode WHEN 'tombstone' THEN 'closed' ELSE 'open' END,
           closed = CASE m.mode WHEN 'tombstone' THEN 'tombstone' END
      FROM m JOIN cur ON cur.member = m.member
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.stream
       AND s.epoch = cur.epoch
       AND CASE WHEN m.epoch IS NULL THEN cur.state = 'open' OR (cur.state = 'closing' AND cur.until <= {now})
                ELSE cur.state = 'closing' AND cur.epoch = m.epoch AND cur.until > {now} END
    RETURNING m.member, s.head, {now} AS at -- read after the lock
), written AS (
    INSERT INTO {schema}.event (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, m.stream, moved.head, m.name, m.data::json, moved.at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, coalesce(moved.head, -1)
  FROM m LEFT JOIN moved ON moved.member = m.member
