-- Puts a signal into the inbox of a run that is not over, unless it is there, and has the
-- step looked at that waits for it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run, ?5 id, ?6 type, ?7 payload
-- do
INSERT INTO holdfast_signal (shard, workspace, run, id, n, type, payload, at)
SELECT ?1, ?2, ?4, ?5, r.version + 1, ?6, ?7, {now}
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4 AND r.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
ON CONFLICT (shard, workspace, run, id) DO NOTHING
RETURNING n
-- then
UPDATE holdfast_run AS r
   SET version = r.version + 1, updated_at = {now}
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- also
UPDATE holdfast_step AS s
   SET due_at = {now}
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4 AND s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = r.step AND s.visit = r.visit
   AND s.status = 'WAITING' AND s.signal = ?6
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$run/' || ?4, r.version, 'signalled', json_object('id', ?5, 'type', ?6), NULL, NULL, NULL, r.updated_at
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- then
SELECT r.status, ?6, ?7, r.version
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- else
SELECT coalesce(r.status, ''), coalesce(g.type, ''), coalesce(g.payload, ''), coalesce(r.version, -1)
  FROM (SELECT 1)
  LEFT JOIN holdfast_run AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
  LEFT JOIN holdfast_signal AS g ON g.shard = ?1 AND g.workspace = ?2 AND g.run = ?4 AND g.id = ?5
