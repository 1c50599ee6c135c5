-- Takes streams on which a reaction has something to do, in the order of their
-- rank, of one workspace or of all. Taking adds one to the epoch; updated_at then is when it was taken. All that is due
-- counts as delivered, unless reactions.deliver says less. Streams on
-- which somebody has died are taken apart from the others: whoever they kill then
-- has nothing else in hand that could be blamed. Who knows another definition of a
-- reaction than the one registered takes nothing of it.
-- A reaction that names a handler is taken by those who serve handlers of its kind.
-- Each reaction is read in the order of its index, as far as the limit: over all
-- of them at once, everything that is due would be sorted.
-- ?1 shard, ?2 workspace ('' for all), ?3 reactions as a JSON list of [name,
-- lease in ms, events or null, streams, workspace or null, handler or null, its kind],
-- ?4 holder, ?5 limit, ?6 limit of streams on which somebody died,
-- ?7 whether the holder is elsewhere, and quiet until it is heard of
-- look
SELECT 1
  FROM json_each(?3) AS q
 WHERE EXISTS (SELECT 1
                 FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2) AND d.reaction = q.value ->> 0
                  AND (q.value ->> 4 IS NULL OR d.workspace = q.value ->> 4)
                  AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now})
 LIMIT 1
-- do
WITH due AS MATERIALIZED (
    SELECT * FROM (
        SELECT c.value ->> 1 AS workspace, q.value ->> 0 AS reaction, c.value ->> 2 AS stream, q.value ->> 1 AS lease
          FROM json_each(?3) AS q
          JOIN json_each((
               SELECT json_group_array(json_array(e.rank, e.workspace, e.stream))
                 FROM (SELECT d.rank, d.workspace, d.stream
                         FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                        WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
                          AND d.reaction = q.value ->> 0 AND (d.deaths > 0) = 0
                          AND (q.value ->> 4 IS NULL OR d.workspace = q.value ->> 4)
                          AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
                          AND EXISTS (SELECT 1 FROM holdfast_reaction AS r
                                       WHERE r.shard = d.shard AND r.workspace = d.workspace AND r.name = d.reaction AND r.state <> 'removed'
                                         AND (q.value ->> 2 IS NULL OR (r.events = q.value -> 2 AND r.streams = q.value ->> 3))
                                         AND (q.value ->> 5 IS NULL
                                              OR (r.options ->> 'handler' = q.value ->> 5
                                                  AND EXISTS (SELECT 1 FROM holdfast_handler AS h
                                                               WHERE h.shard = d.shard AND h.workspace = d.workspace AND h.name = q.value ->> 5
                                                                 AND h.kind = q.value ->> 6))))
                        ORDER BY d.rank
                        LIMIT +?5) AS e)) AS c
         ORDER BY c.value ->> 0
         LIMIT +?5)
    UNION ALL
    SELECT * FROM (
        SELECT c.value ->> 1 AS workspace, q.value ->> 0 AS reaction, c.value ->> 2 AS stream, q.value ->> 1 AS lease
          FROM json_each(?3) AS q
          JOIN json_each((
               SELECT json_group_array(json_array(e.rank, e.workspace, e.stream))
                 FROM (SELECT d.rank, d.workspace, d.stream
                         FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                        WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
                          AND d.reaction = q.value ->> 0 AND (d.deaths > 0) = 1
                          AND (q.value ->> 4 IS NULL OR d.workspace = q.value ->> 4)
                          AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
                          AND EXISTS (SELECT 1 FROM holdfast_reaction AS r
                                       WHERE r.shard = d.shard AND r.workspace = d.workspace AND r.name = d.reaction AND r.state <> 'removed'
                                         AND (q.value ->> 2 IS NULL OR (r.events = q.value -> 2 AND r.streams = q.value ->> 3))
                                         AND (q.value ->> 5 IS NULL
                                              OR (r.options ->> 'handler' = q.value ->> 5
                                                  AND EXISTS (SELECT 1 FROM holdfast_handler AS h
                                                               WHERE h.shard = d.shard AND h.workspace = d.workspace AND h.name = q.value ->> 5
                                                                 AND h.kind = q.value ->> 6))))
                        ORDER BY d.rank
                        LIMIT +?6) AS e)) AS c
         ORDER BY c.value ->> 0
         LIMIT +?6)
)
UPDATE holdfast_follow AS f
   SET holder = ?4, epoch = f.epoch + 1, until = {now} + due.lease, updated_at = {now}, delivered = f.due, delivered_epoch = f.epoch + 1, quiet = ?7
  FROM due
 WHERE f.shard = ?1 AND f.workspace = due.workspace AND f.reaction = due.reaction AND f.stream = due.stream
   AND f.holder IS NULL
RETURNING workspace, reaction, stream, watermark, due, epoch, until, failures, deaths, generation
