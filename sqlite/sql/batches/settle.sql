-- Ends the lease of an item. 'done' stores the output; 'fail' counts a failure; 'died'
-- counts a crash of the holder of an expired lease, or a lost hand-out if the holder never
-- reported; 'release' counts nothing. After all but 'done' the item waits to be taken
-- again. The last allowed failure or crash is not counted here: batches.give_up_item gives that
-- item up and refunds it. Lost hand-outs have no limit.
-- do
UPDATE holdfast_item AS i
   SET state = CASE WHEN :how = 'done' THEN 'succeeded' ELSE 'waiting' END, output = :output, failures = i.failures + (:how = 'fail'),
       deaths = i.deaths + (:how = 'died' AND NOT i.quiet), quiet = 0, lost = CASE WHEN :how = 'died' AND i.quiet THEN i.lost + 1 ELSE 0 END,
       error = CASE WHEN :how = 'died' AND i.quiet THEN 'handed out to ' || i.holder || ', but no response arrived' WHEN :how = 'died' THEN 'the lease of holder ' || i.holder || ' expired' ELSE :error END,
       due_at = CASE WHEN :how <> 'done' THEN {now} + :delay END, holder = NULL, until = NULL, updated_at = {now}
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
   AND i.state = 'running' AND i.epoch = :epoch AND (i.until <= {now}) = (:how = 'died')
   AND (:how NOT IN ('fail', 'died') OR EXISTS (
       SELECT 1 {include batches/by_id} AND (:how <> 'fail' OR i.failures + 1 < b.attempts) AND (:how <> 'died' OR i.quiet OR i.deaths + 1 < b.allowed)))
-- then
UPDATE holdfast_batch AS b
   SET running = b.running - 1, succeeded = b.succeeded + (:how = 'done'), waiting = b.waiting + (:how <> 'done'), version = b.version + 1, updated_at = {now},
       due_at = CASE WHEN :how = 'done' AND b.sealed AND NOT b.cancel_requested AND b.next = b.items AND b.waiting = 0 AND b.running = 1 AND b.dirty = 0
                     THEN {now} ELSE b.due_at END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version,
       CASE WHEN :how = 'died' AND i.lost > 0 THEN 'itemLost' WHEN :how = 'done' THEN 'itemSucceeded' WHEN :how = 'fail' THEN 'itemFailed'
            WHEN :how = 'died' THEN 'itemDied' ELSE 'itemReleased' END,
       json_object('key', i.key, 'state', i.state, 'failures', i.failures, 'deaths', i.deaths, 'lost', i.lost, 'over', json(iif(b.due_at IS NULL, 'false', 'true')),
                   'counts', json_object('pending', b.items - b.next + b.waiting, 'running', b.running, 'succeeded', b.succeeded, 'failed', b.failed,
                                         'cancelled', b.cancelled, 'accepted', b.accepted)), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = :key
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- then
SELECT i.state, i.epoch, i.failures, i.deaths, coalesce(i.output, ''), b.due_at IS NOT NULL, 0
  FROM holdfast_batch AS b JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = :key
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- else
SELECT coalesce(i.state, ''), coalesce(i.epoch, 0), coalesce(i.failures, 0), coalesce(i.deaths, 0), coalesce(i.output, ''), 0,
       coalesce(i.state = 'running' AND i.epoch = :epoch AND (i.until <= {now}) = (:how = 'died'), 0)
  FROM (SELECT 1) LEFT JOIN holdfast_item AS i ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
