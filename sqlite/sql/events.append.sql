-- Appends events to a stream if its head is where the caller expects it. A closed
-- stream takes nothing; one that was being closed when its closer died is opened
-- again.
-- ?1 shard, ?2 workspace, ?3 command, ?4 stream, ?5 want (NULL any, -1 none),
-- ?6 number of events, ?7 revision, ?8 marks; an event: ?9 n, ?10 name, ?11 data,
-- ?12 subject, ?13 correlation, ?14 causation, ?15 actor
-- do
INSERT INTO holdfast_stream AS s (shard, workspace, name, head)
SELECT ?1, ?2, ?4, ?6 - 1
 WHERE ?5 IS NULL
    OR ?5 = -1
    OR EXISTS (SELECT 1 FROM holdfast_stream AS x
                WHERE x.shard = ?1 AND x.workspace = ?2 AND x.name = ?4)
ON CONFLICT (shard, workspace, name) DO UPDATE SET head = s.head + ?6, state = 'open', holder = NULL, until = NULL
 WHERE (?5 IS NULL OR s.head = ?5)
   AND (s.state = 'open' OR (s.state = 'closing' AND s.until <= {now}))
RETURNING head, 0
-- each
INSERT INTO holdfast_event
    (shard, id, n, workspace, stream, version, name, data, subject, correlation, causation, actor, at)
SELECT ?1, ?3, ?9, ?2, ?4, s.head - ?6 + 1 + ?9, ?10, ?11, ?12, ?13, ?14, ?15, {now}
  FROM holdfast_stream AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4
-- else
SELECT coalesce(s.head, -1), coalesce(s.state = 'closed' OR (s.state = 'closing' AND s.until > {now}), 0)
  FROM (SELECT 1) LEFT JOIN holdfast_stream AS s
    ON s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4
