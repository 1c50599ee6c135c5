-- Takes streams on which a reaction has something to do, in the order of their
-- rank, of one workspace or of all. Taking adds one to the epoch. Streams on
-- which somebody has died are taken apart from the others: whoever they kill then
-- has nothing else in hand that could be blamed. Who knows another definition of a
-- reaction than the one registered takes nothing of it.
-- ?1 shard, ?2 workspace ('' for all), ?3 reactions as a JSON list of [name,
-- lease in ms, events or null, streams], ?4 holder, ?5 limit, ?6 limit of streams on which somebody died
-- look
SELECT 1
  FROM holdfast_follow AS d
 WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
   AND d.reaction IN (SELECT q.value ->> 0 FROM json_each(?3) AS q)
   AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
 LIMIT 1
-- do
UPDATE holdfast_follow AS f
   SET holder = ?4, epoch = f.epoch + 1,
       until = {now} + (SELECT q.value ->> 1 FROM json_each(?3) AS q WHERE q.value ->> 0 = f.reaction)
 WHERE f.shard = ?1
   AND (f.workspace, f.reaction, f.stream) IN (
       SELECT * FROM (
           SELECT d.workspace, d.reaction, d.stream
             FROM holdfast_follow AS d
            WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
              AND d.reaction IN (SELECT q.value ->> 0 FROM json_each(?3) AS q) AND (d.deaths > 0) = 0
              AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
              AND EXISTS (SELECT 1 FROM json_each(?3) AS q JOIN holdfast_reaction AS r
                             ON r.shard = d.shard AND r.workspace = d.workspace AND r.name = d.reaction AND r.state <> 'removed'
                            AND (q.value ->> 2 IS NULL OR (r.events = q.value -> 2 AND r.streams = q.value ->> 3))
                           WHERE q.value ->> 0 = d.reaction)
            ORDER BY d.rank
            LIMIT ?5)
       UNION ALL
       SELECT * FROM (
           SELECT d.workspace, d.reaction, d.stream
             FROM holdfast_follow AS d
            WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
              AND d.reaction IN (SELECT q.value ->> 0 FROM json_each(?3) AS q) AND (d.deaths > 0) = 1
              AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
              AND EXISTS (SELECT 1 FROM json_each(?3) AS q JOIN holdfast_reaction AS r
                             ON r.shard = d.shard AND r.workspace = d.workspace AND r.name = d.reaction AND r.state <> 'removed'
                            AND (q.value ->> 2 IS NULL OR (r.events = q.value -> 2 AND r.streams = q.value ->> 3))
                           WHERE q.value ->> 0 = d.reaction)
            ORDER BY d.rank
            LIMIT ?6))
RETURNING workspace, reaction, stream, watermark, due, epoch, until, failures, deaths, generation
