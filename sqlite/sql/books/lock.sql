-- Tells where a stream stands. The transaction that asks is the only one that
-- writes.
SELECT s.first, s.head, s.state, coalesce(s.closed, ''), coalesce(s.holder, ''), s.epoch,
       coalesce(s.until, 0), coalesce(s.until > {now}, 0)
  FROM holdfast_stream AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
