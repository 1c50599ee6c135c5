-- Lists steps that wait for a signal although their deadline passed :patience ago or earlier, the oldest first.
SELECT s.run || '/' || s.name || '/' || s.visit::text, s.deadline, '', s.deadline, s.run, s.name, s.visit::text, '', ''
  FROM {schema}.step s
 WHERE s.shard + 0 = :shard AND s.handler = '' AND s.workspace = :workspace AND s.due_at <= (SELECT {now} - :patience::float8 * interval '1 ms')
   AND s.type = 'event' AND s.deadline <= s.due_at
 ORDER BY s.due_at
 LIMIT :limit
