-- Takes streams on which a reaction has something to do, of each workspace as many as
-- its share, in the order of their rank. Taking adds one to the epoch; updated_at then is when it was taken. All that is due
-- counts as delivered, unless reactions.deliver says less. Streams on
-- which a holder has crashed come first, the largest groups before the others; a holder gets so
-- many of them that it has no more in hand than the group of any of them allows, those in its hands included. Who knows another
-- definition of a reaction than the one registered takes nothing of it.
-- A reaction that names a handler is taken by those who serve handlers of its kind.
-- Each reaction is read in the order of its index, as far as the limit: over all
-- of them at once, everything that is due would be sorted.
-- ?1 shard, ?2 workspace ('' for all), ?3 reactions as a JSON list of [name,
-- lease in ms, events or null, streams, workspace, handler or null, its kind],
-- ?4 holder, ?5 limit, ?6 limit of streams among them on which a holder has crashed,
-- ?7 whether the holder is elsewhere, and quiet until it is heard of, ?8 the share of a workspace
-- look
SELECT 1
  FROM json_each(?3) AS q
 WHERE EXISTS (SELECT 1
                 FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2) AND d.reaction = q.value ->> 0
                  AND d.workspace = q.value ->> 4
                  AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now})
 LIMIT 1
-- do
WITH hand AS MATERIALIZED (
    SELECT count(*) AS n, min(h.crash_group) AS smallest
      FROM holdfast_follow AS h INDEXED BY holdfast_follow_suspect
     WHERE h.shard = ?1 AND (?2 = '' OR h.workspace = ?2) AND h.holder = ?4 AND h.holder IS NOT NULL AND h.crash_group > 0
), crashed AS MATERIALIZED (
    SELECT w.workspace, w.reaction, w.stream, w.lease
      FROM (
        SELECT c.value ->> 1 AS workspace, q.value ->> 0 AS reaction, c.value ->> 2 AS stream, q.value ->> 1 AS lease,
               c.value ->> 3 AS crash_group, row_number() OVER (ORDER BY c.value ->> 3 DESC, c.value ->> 0) AS nth
          FROM json_each(?3) AS q
          JOIN json_each((
               SELECT json_group_array(json_array(e.rank, e.workspace, e.stream, e.crash_group))
                 FROM (SELECT d.rank, d.workspace, d.stream, d.crash_group
                         FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                        WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
                          AND d.reaction = q.value ->> 0 AND d.crash_group > 0
                          AND d.workspace = q.value ->> 4
                          AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
                          AND EXISTS (SELECT 1 FROM holdfast_reaction AS r
                                       WHERE r.shard = d.shard AND r.workspace = d.workspace AND r.name = d.reaction AND r.state <> 'removed'
                                         AND (q.value ->> 2 IS NULL OR (r.events = q.value -> 2 AND r.streams = q.value ->> 3))
                                         AND (q.value ->> 5 IS NULL
                                              OR (r.options ->> 'handler' = q.value ->> 5
                                                  AND EXISTS (SELECT 1 FROM holdfast_handler AS h
                                                               WHERE h.shard = d.shard AND h.workspace = d.workspace AND h.name = q.value ->> 5
                                                                 AND h.kind = q.value ->> 6))))
                        ORDER BY d.crash_group DESC, d.rank
                        LIMIT +?6) AS e)) AS c
           ) AS w
     WHERE w.nth <= ?6
       AND w.nth + (SELECT hand.n FROM hand) <= min(w.crash_group, coalesce((SELECT hand.smallest FROM hand), w.crash_group))
), due AS MATERIALIZED (
    SELECT crashed.workspace, crashed.reaction, crashed.stream, crashed.lease FROM crashed
    UNION ALL
    SELECT * FROM (
        SELECT s.workspace, s.reaction, s.stream, s.lease FROM (
        SELECT c.value ->> 1 AS workspace, q.value ->> 0 AS reaction, c.value ->> 2 AS stream, q.value ->> 1 AS lease, c.value ->> 0 AS rank,
               row_number() OVER (PARTITION BY c.value ->> 1 ORDER BY c.value ->> 0) AS turn
          FROM json_each(?3) AS q
          JOIN json_each((
               SELECT json_group_array(json_array(e.rank, e.workspace, e.stream))
                 FROM (SELECT d.rank, d.workspace, d.stream
                         FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                        WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
                          AND d.reaction = q.value ->> 0 AND d.crash_group = 0
                          AND d.workspace = q.value ->> 4
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
                        LIMIT +?8) AS e)) AS c) AS s
         WHERE s.turn <= ?8
         ORDER BY s.turn, s.rank
         LIMIT max(?5 - (SELECT count(*) FROM crashed), 0))
)
UPDATE holdfast_follow AS f
   SET holder = ?4, epoch = f.epoch + 1, until = {now} + due.lease, updated_at = {now}, delivered = f.due, delivered_epoch = f.epoch + 1, quiet = ?7
  FROM due
 WHERE f.shard = ?1 AND f.workspace = due.workspace AND f.reaction = due.reaction AND f.stream = due.stream
   AND f.holder IS NULL
RETURNING workspace, reaction, stream, watermark, due, epoch, until, failures, deaths, crash_group, generation
