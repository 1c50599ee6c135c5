-- Appends events to a stream if its head is where the caller expects it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 stream, ?5 want (NULL any, -1 none),
-- ?6 number of events; an event: ?7 n, ?8 name, ?9 data, ?10 correlation,
-- ?11 causation, ?12 actor
-- do
INSERT INTO holdfast_stream AS s (shard, workspace, name, head)
SELECT ?1, ?2, ?4, ?6 - 1
 WHERE ?5 IS NULL
    OR ?5 = -1
    OR EXISTS (SELECT 1 FROM holdfast_stream AS x
                WHERE x.shard = ?1 AND x.workspace = ?2 AND x.name = ?4)
ON CONFLICT (shard, workspace, name) DO UPDATE SET head = s.head + ?6
 WHERE ?5 IS NULL OR s.head = ?5
RETURNING head
-- each
INSERT INTO holdfast_event
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, ?7, ?2, ?4, s.head - ?6 + 1 + ?7, ?8, ?9, ?10, ?11, ?12, {now}
  FROM holdfast_stream AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4
-- else
SELECT coalesce((SELECT s.head FROM holdfast_stream AS s
                  WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4), -1)
