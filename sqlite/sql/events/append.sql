-- Appends events to a stream if its head is the expected one. A closed stream accepts
-- nothing; a stream whose closer crashed is reopened.
-- do
INSERT INTO holdfast_stream AS s (shard, workspace, name, head)
SELECT :shard, :workspace, :stream, :size - 1
 WHERE :want IS NULL
    OR :want = -1
    OR EXISTS (SELECT 1 FROM holdfast_stream AS x
                WHERE x.shard = :shard AND x.workspace = :workspace AND x.name = :stream)
ON CONFLICT (shard, workspace, name) DO UPDATE SET head = s.head + :size, state = 'open', holder = NULL, until = NULL
 WHERE (:want IS NULL OR s.head = :want)
   AND (s.state = 'open' OR (s.state = 'closing' AND s.until <= {now}))
RETURNING head, 0, {now}
-- each
INSERT INTO holdfast_event
    (shard, id, n, workspace, stream, version, name, data, subject, correlation, causation, actor, at)
SELECT :shard, :command, :n, :workspace, :stream, s.head - :size + 1 + :n, :name, :data, :subject, :correlation, :causation, :actor, :did3
  FROM holdfast_stream AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
-- else
SELECT coalesce(s.head, -1), coalesce(s.state = 'closed' OR (s.state = 'closing' AND s.until > {now}), 0), 0
  FROM (SELECT 1) LEFT JOIN holdfast_stream AS s
    ON s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
