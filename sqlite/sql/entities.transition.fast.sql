-- Moves an entity from the one status named (?6; NULL where several are), or
-- does nothing and returns nothing. The update tells the version and the time
-- of the event (:did2, :did5).
-- do
UPDATE holdfast_entity AS e
   SET status = ?8, version = e.version + 1, data = coalesce(?10, e.data), updated_at = {now}
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5 AND e.status = ?6 AND e.phase = 'free'
   AND (?9 IS NULL OR e.version = ?9)
RETURNING status, version, data, created_at, updated_at
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
VALUES (?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, :did2, ?11, json_object('from', ?6, 'to', ?8, 'note', json(?12)), ?13, ?14, ?15, :did5)
