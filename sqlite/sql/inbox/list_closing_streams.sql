-- Lists streams that a closer left in the course of being closed, the oldest first: its lease ended :patience ago or earlier.
SELECT s.name, s.until, s.holder, 0, s.name, CAST(s.head AS TEXT), '', '', ''
  FROM holdfast_stream AS s INDEXED BY holdfast_stream_held
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.holder IS NOT NULL AND s.until <= {now} - :patience
 ORDER BY s.until
 LIMIT :limit
