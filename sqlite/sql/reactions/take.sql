-- Takes streams on which a reaction has work, for each workspace up to its share, in the
-- order of their rank; those of one reaction are read by the time at which they are due.
-- Increments the epoch and sets updated_at to the time of the take. All due events count as
-- delivered, unless reactions.record_delivery records less. Streams on which a holder has
-- crashed come first, the largest crash groups before the others; a holder gets only as many
-- of them as the smallest of their groups allows, including those it already has. A caller
-- that knows another definition of a reaction than the registered one takes nothing of it. A
-- reaction that names a handler is taken by callers that serve handlers of its kind. Each
-- reaction is read in the order of its index, up to the limit: over all reactions at once, all
-- due streams would be sorted.
-- look
SELECT 1
  FROM json_each(:reactions) AS q
 WHERE (SELECT {include reactions/is_due}
          FROM (SELECT :shard AS shard, q.value ->> 0 AS reaction, q.value ->> 4 AS workspace) AS a
         WHERE :workspace = '' OR a.workspace = :workspace)
 LIMIT 1
-- do
WITH held AS MATERIALIZED (
    SELECT count(*) AS n, min(h.crash_group) AS smallest
      FROM holdfast_follow AS h INDEXED BY holdfast_follow_suspect
     WHERE h.shard = :shard AND (:workspace = '' OR h.workspace = :workspace) AND h.holder = :holder AND h.holder IS NOT NULL AND h.crash_group > 0
), crashed AS MATERIALIZED (
    SELECT w.workspace, w.reaction, w.stream, w.lease
      FROM (
        SELECT c.value ->> 1 AS workspace, q.value ->> 0 AS reaction, c.value ->> 2 AS stream, q.value ->> 1 AS lease,
               c.value ->> 3 AS crash_group, row_number() OVER (ORDER BY c.value ->> 3 DESC, c.value ->> 0) AS nth
          FROM json_each(:reactions) AS q
          JOIN json_each((
               SELECT json_group_array(json_array(e.rank, e.workspace, e.stream, e.crash_group))
                 FROM (SELECT d.rank, d.workspace, d.stream, d.crash_group
                         FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                        WHERE d.shard = :shard AND (:workspace = '' OR d.workspace = :workspace)
                          AND d.reaction = q.value ->> 0 AND d.crash_group > 0
                          AND d.workspace = q.value ->> 4
                          AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
                          AND {include reactions/is_served}
                        ORDER BY d.crash_group DESC, d.due_at
                        LIMIT :crashed) AS e)) AS c
           ) AS w
     WHERE w.nth <= :crashed
       AND w.nth + (SELECT held.n FROM held) <= min(w.crash_group, coalesce((SELECT held.smallest FROM held), w.crash_group))
), due AS MATERIALIZED (
    SELECT crashed.workspace, crashed.reaction, crashed.stream, crashed.lease FROM crashed
    UNION ALL
    SELECT * FROM (
        SELECT s.workspace, s.reaction, s.stream, s.lease FROM (
        SELECT c.value ->> 1 AS workspace, q.value ->> 0 AS reaction, c.value ->> 2 AS stream, q.value ->> 1 AS lease, c.value ->> 0 AS rank,
               row_number() OVER (PARTITION BY c.value ->> 1 ORDER BY c.value ->> 0) AS turn
          FROM json_each(:reactions) AS q
          JOIN json_each((
               SELECT json_group_array(json_array(e.rank, e.workspace, e.stream))
                 FROM (SELECT d.rank, d.workspace, d.stream
                         FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                        WHERE d.shard = :shard AND (:workspace = '' OR d.workspace = :workspace)
                          AND d.reaction = q.value ->> 0 AND d.crash_group = 0
                          AND d.workspace = q.value ->> 4
                          AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now}
                          AND {include reactions/is_served}
                        ORDER BY d.due_at
                        LIMIT :share) AS e)) AS c) AS s
         WHERE s.turn <= :share
         ORDER BY s.turn, s.rank
         LIMIT max(:limit - (SELECT count(*) FROM crashed), 0))
)
UPDATE holdfast_follow AS f
   SET holder = :holder, epoch = f.epoch + 1, until = {now} + due.lease, updated_at = {now}, delivered = f.due, delivered_epoch = f.epoch + 1, quiet = :quiet
  FROM due
 WHERE f.shard = :shard AND f.workspace = due.workspace AND f.reaction = due.reaction AND f.stream = due.stream
   AND f.holder IS NULL
RETURNING workspace, reaction, stream, watermark, due, epoch, until, failures, deaths, crash_group, generation
