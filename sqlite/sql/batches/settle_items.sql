-- Stores the outputs of items of a batch and ends their leases: all or none.
-- do
UPDATE holdfast_batch AS b
   SET running = b.running - :size, succeeded = b.succeeded + :size, version = b.version + :size, updated_at = {now},
       due_at = CASE WHEN b.sealed AND NOT b.cancel_requested AND b.next = b.items AND b.waiting = 0 AND b.running = :size AND b.dirty = 0
                     THEN {now} ELSE b.due_at END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
   AND :size = (SELECT count(DISTINCT i.n)
                  FROM {children} CROSS JOIN holdfast_item AS i ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = c.key
                 WHERE i.state = 'running' AND i.epoch = c.epoch AND i.until > {now})
RETURNING due_at IS NOT NULL, version - :size,
          json_object('pending', items - next + waiting, 'running', running, 'succeeded', succeeded, 'failed', failed, 'cancelled', cancelled, 'accepted', accepted), updated_at
-- also
UPDATE holdfast_item AS i
   SET state = 'succeeded', output = c.output, quiet = 0, lost = 0, error = NULL, due_at = NULL, holder = NULL, until = NULL, updated_at = :did4
  FROM (SELECT :batch AS batch, c.key, c.output FROM {children} LIMIT :size) AS c -- as a table of its own, which is read first
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = c.batch AND i.key = c.key
-- also
{include history/write}
SELECT :shard, :command, row_number() OVER (ORDER BY i.n) - 1, :workspace, '$batch/' || :batch, :did2 + row_number() OVER (ORDER BY i.n), 'itemSucceeded',
       json_object('key', i.key, 'state', i.state, 'failures', i.failures, 'deaths', i.deaths, 'lost', 0, 'over', json(iif(:did1, 'true', 'false')), 'counts', json(:did3)),
       NULL, NULL, NULL, i.updated_at
  FROM {children} CROSS JOIN holdfast_item AS i ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = c.key
-- then
SELECT :did1
-- else
SELECT 0
