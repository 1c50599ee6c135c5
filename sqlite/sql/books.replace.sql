-- Replaces the events of a stream by one: a tombstone, which closes the stream,
-- or a snapshot, with which it goes on. It is done under the epoch of whoever is
-- closing it or, without one, as it is open, which adds one to the epoch. The
-- events before go by their versions alone; they are deleted later.
-- ?1 shard, ?2 workspace, ?3 command, ?4 stream, ?5 epoch (NULL none), ?6 mode,
-- ?7 name, ?8 data
-- do
UPDATE holdfast_stream AS s
   SET head = s.head + 1, first = s.head + 1, holder = NULL, until = NULL,
       epoch = coalesce(?5, s.epoch + 1),
       state = CASE ?6 WHEN 'tombstone' THEN 'closed' ELSE 'open' END,
       closed = CASE ?6 WHEN 'tombstone' THEN 'tombstone' END
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4
   AND CASE WHEN ?5 IS NULL THEN s.state = 'open' OR (s.state = 'closing' AND s.until <= {now})
            ELSE s.state = 'closing' AND s.epoch = ?5 AND s.until > {now} END
RETURNING head
-- then
INSERT INTO holdfast_event (shard, id, n, workspace, stream, version, name, data, at)
SELECT ?1, ?3, 0, ?2, ?4, s.head, ?7, ?8, {now}
  FROM holdfast_stream AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4
-- else
SELECT -1
