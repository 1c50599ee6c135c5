-- Replaces the events of a stream with one event: a tombstone, which closes the stream, or a
-- snapshot, with which the stream continues. Runs under the epoch of the closer or, without
-- one, while the stream is open, which increments the epoch. The earlier events are only
-- removed by version here; they are deleted later.
-- do
UPDATE holdfast_stream AS s
   SET head = s.head + 1, first = s.head + 1, holder = NULL, until = NULL,
       epoch = coalesce(:epoch, s.epoch + 1),
       state = CASE :mode WHEN 'tombstone' THEN 'closed' ELSE 'open' END,
       closed = CASE :mode WHEN 'tombstone' THEN 'tombstone' END
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND CASE WHEN :epoch IS NULL THEN s.state = 'open' OR (s.state = 'closing' AND s.until <= {now})
            ELSE s.state = 'closing' AND s.epoch = :epoch AND s.until > {now} END
RETURNING head
-- then
INSERT INTO holdfast_event (shard, id, n, workspace, stream, version, name, data, at)
SELECT :shard, :command, 0, :workspace, :stream, s.head, :name, :data, {now}
  FROM holdfast_stream AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
-- else
SELECT -1
