-- Ends a hold of an item. 'done' keeps the output; 'fail' counts a failure, and 'died' a
-- death, of a hold that has run out: the item waits to be taken again. Of a hold that was
-- quiet it counts a lost hand-out instead, however many. 'release' counts
-- nothing. The last failure or death that is allowed is not counted here: that item is to
-- be given up, and what it cost returned.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 key, ?6 how, ?7 epoch, ?8 output, ?9 error, ?10 delay in ms
-- do
UPDATE holdfast_item AS i
   SET state = CASE WHEN ?6 = 'done' THEN 'succeeded' ELSE 'waiting' END, output = ?8, failures = i.failures + (?6 = 'fail'),
       deaths = i.deaths + (?6 = 'died' AND NOT i.quiet), quiet = 0, lost = CASE WHEN ?6 = 'died' AND i.quiet THEN i.lost + 1 ELSE 0 END,
       error = CASE WHEN ?6 = 'died' AND i.quiet THEN 'it was handed out to ' || i.holder || ', who was not heard of' WHEN ?6 = 'died' THEN 'the holder ' || i.holder || ' did not come back' ELSE ?9 END,
       due_at = CASE WHEN ?6 <> 'done' THEN {now} + ?10 END, holder = NULL, until = NULL, updated_at = {now}
 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key = ?5
   AND i.state = 'running' AND i.epoch = ?7 AND (i.until <= {now}) = (?6 = 'died')
   AND (?6 NOT IN ('fail', 'died') OR EXISTS (
       SELECT 1 FROM holdfast_batch AS b
        WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4 AND (?6 <> 'fail' OR i.failures + 1 < b.attempts) AND (?6 <> 'died' OR i.quiet OR i.deaths + 1 < b.allowed)))
-- then
UPDATE holdfast_batch AS b
   SET running = b.running - 1, succeeded = b.succeeded + (?6 = 'done'), waiting = b.waiting + (?6 <> 'done'), version = b.version + 1, updated_at = {now},
       due_at = CASE WHEN ?6 = 'done' AND b.sealed AND NOT b.cancel_requested AND b.next = b.items AND b.waiting = 0 AND b.running = 1 AND b.dirty = 0
                     THEN {now} ELSE b.due_at END
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version,
       CASE WHEN ?6 = 'died' AND i.lost > 0 THEN 'itemLost' WHEN ?6 = 'done' THEN 'itemSucceeded' WHEN ?6 = 'fail' THEN 'itemFailed'
            WHEN ?6 = 'died' THEN 'itemDied' ELSE 'itemReleased' END,
       json_object('key', i.key, 'state', i.state, 'failures', i.failures, 'deaths', i.deaths, 'lost', i.lost, 'over', json(iif(b.due_at IS NULL, 'false', 'true')),
                   'counts', json_object('pending', b.items - b.next + b.waiting, 'running', b.running, 'succeeded', b.succeeded, 'failed', b.failed,
                                         'cancelled', b.cancelled, 'accepted', b.accepted)), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = ?5
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- then
SELECT i.state, i.epoch, i.failures, i.deaths, coalesce(i.output, ''), b.due_at IS NOT NULL, 0
  FROM holdfast_batch AS b JOIN holdfast_item AS i ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.key = ?5
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT coalesce(i.state, ''), coalesce(i.epoch, 0), coalesce(i.failures, 0), coalesce(i.deaths, 0), coalesce(i.output, ''), 0,
       coalesce(i.state = 'running' AND i.epoch = ?7 AND (i.until <= {now}) = (?6 = 'died'), 0)
  FROM (SELECT 1) LEFT JOIN holdfast_item AS i ON i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key = ?5
