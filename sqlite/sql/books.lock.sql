-- Tells where a stream stands. The transaction that asks is the only one that
-- writes.
-- ?1 shard, ?2 workspace, ?3 stream
-- do
SELECT s.first, s.head, s.state, coalesce(s.closed, ''), coalesce(s.holder, ''), s.epoch,
       coalesce(s.until, 0), coalesce(s.until > {now}, 0)
  FROM holdfast_stream AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
