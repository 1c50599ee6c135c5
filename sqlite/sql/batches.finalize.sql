-- Accepts items of a batch that have succeeded and are not decided: those named, or all.
-- None, once a cancel is requested or the batch is at its end.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 keys as a JSON list, null for all
-- do
UPDATE holdfast_batch AS b
   SET accepted = b.accepted + n.taken, version = b.version + 1, updated_at = {now}
  FROM (SELECT count(*) AS taken FROM holdfast_item AS i
         WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.state = 'succeeded' AND i.decision IS NULL
           AND (?5 IS NULL OR i.key IN (SELECT k.value FROM json_each(?5) AS k))) AS n
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4 AND n.taken > 0
   AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
   AND NOT EXISTS (SELECT 1 FROM json_each(coalesce(?5, '[]')) AS k
                    WHERE NOT EXISTS (SELECT 1 FROM holdfast_item AS i WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key = k.value))
RETURNING 1, accepted - (SELECT count(*) FROM holdfast_item AS i
                          WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.state = 'succeeded' AND i.decision = 'accepted'), ''
-- also
UPDATE holdfast_item AS i
   SET decision = 'accepted', updated_at = {now}
 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.state = 'succeeded' AND i.decision IS NULL
   AND (?5 IS NULL OR i.key IN (SELECT k.value FROM json_each(?5) AS k))
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version, 'itemsAccepted', json_object('taken', :did2, 'accepted', b.accepted), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT EXISTS (SELECT 1 FROM holdfast_batch AS b WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4), 0,
       coalesce((SELECT min(k.value) FROM json_each(coalesce(?5, '[]')) AS k
                  WHERE NOT EXISTS (SELECT 1 FROM holdfast_item AS i WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key = k.value)), '')
