-- Replaces the events of a stream by one: a tombstone, which closes the stream,
-- or a snapshot, with which it goes on. It is done under the epoch of whoever is
-- closing it or, without one, as it is open, which adds one to the epoch. The
-- events before go by their versions alone; they are deleted later.
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
