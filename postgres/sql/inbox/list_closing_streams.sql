-- Lists streams that a closer left in the course of being closed, the oldest first: its lease ended :patience ago or earlier.
SELECT s.name, s.until, s.holder, 'epoch'::timestamptz, s.name, s.head::text, '', '', ''
  FROM {schema}.stream s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace) AND s.holder IS NOT NULL AND s.until <= (SELECT {now} - :patience::float8 * interval '1 ms')
 ORDER BY s.until
 LIMIT :limit
