-- Records that items of a batch were cleaned up, under the lease of the cleanup. An item that is clean has no lease to lose.
-- do
SELECT (SELECT count(*) FROM json_each(:items) AS x CROSS JOIN holdfast_item AS i
            ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0 AND i.sweeps = x.value ->> 1
         WHERE i.sweep_at > t.now OR NOT i.dirty),
       (SELECT count(*) FROM json_each(:items) AS x CROSS JOIN holdfast_item AS i
            ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = x.value ->> 0 AND i.sweeps = x.value ->> 1
         WHERE i.dirty AND i.sweep_at > t.now AND x.value ->> 2 = 0), t.now
  FROM (SELECT {now} AS now) AS t
-- also
UPDATE holdfast_batch AS b
   SET dirty = b.dirty - :did2, error = NULL,
       due_at = CASE WHEN b.dirty = :did2 AND b.waiting = 0 AND b.running = 0 AND (b.cancel_requested OR b.sealed AND b.next = b.items)
                     THEN :did3 ELSE b.due_at END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND (:did2 > 0 OR b.error IS NOT NULL AND b.status IN ('CANCELLED', 'COMPLETED'))
-- also
UPDATE holdfast_item AS i
   SET dirty = i.dirty AND (SELECT x.value ->> 2 FROM json_each(:items) AS x WHERE x.value ->> 0 = i.key),
       sweep_at = CASE WHEN NOT i.dirty AND (SELECT x.value ->> 3 FROM json_each(:items) AS x WHERE x.value ->> 0 = i.key) THEN i.sweep_at
                       WHEN NOT i.dirty THEN NULL
                       WHEN (SELECT x.value ->> 2 FROM json_each(:items) AS x WHERE x.value ->> 0 = i.key) THEN coalesce(i.late, :did3)
                       ELSE :did3 + (SELECT b.timeout {include batches/by_id}) END
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key IN (SELECT x.value ->> 0 FROM json_each(:items) AS x)
   AND i.sweeps = (SELECT x.value ->> 1 FROM json_each(:items) AS x WHERE x.value ->> 0 = i.key) AND (i.sweep_at > :did3 OR NOT i.dirty)
-- then
SELECT :did1, coalesce(b.due_at = :did3 AND :did2 > 0, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_batch AS b ON b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
