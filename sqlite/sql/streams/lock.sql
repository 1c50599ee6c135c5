-- Returns the state of a stream. The calling transaction is the only writer, so there is
-- nothing to lock.
SELECT s.first, s.head, s.state, coalesce(s.closed, ''), coalesce(s.holder, ''), s.epoch,
       coalesce(s.until, 0), coalesce(s.until > {now}, 0)
  FROM holdfast_stream AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
