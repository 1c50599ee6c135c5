-- Takes streams on which a reaction has work, for each workspace up to its share, in the
-- order of their rank. Those of one reaction are read by the time at which they are due, which
-- is the same order unless its priority was changed. Increments the epoch and sets updated_at to
-- the time of the take. All due events count as delivered, unless reactions.record_delivery
-- records less. Rows that others are taking are skipped. Streams on which a holder has crashed
-- come first, the largest crash groups before the others; a holder gets only as many of them as
-- the smallest of their groups allows, including those it already has. Rows are found again by
-- their ctid, as in entities.take_due. A caller that knows another definition of a reaction than
-- the registered one takes nothing of it. A reaction that names a handler is taken by callers
-- that serve handlers of its kind.
-- :reactions a JSON list of [name, lease in ms, events or null, streams, workspace, handler or null, its kind];
-- :crashed the limit of streams on which a holder has crashed; :quiet whether the holder is remote and has not reported
-- yet
WITH held AS MATERIALIZED (
    SELECT pg_catalog.count(*) AS n, pg_catalog.min(h.crash_group) AS smallest
      FROM {schema}.follow h
     WHERE h.shard = :shard AND (:workspace = '' OR h.workspace = :workspace) AND h.holder = :holder AND h.holder IS NOT NULL AND h.crash_group > 0
), crashed AS MATERIALIZED (
    SELECT c.shard, c.workspace, c.place, c.lease
      FROM (SELECT d.shard, d.workspace, d.place, d.lease, d.crash_group, pg_catalog.row_number() OVER (ORDER BY d.crash_group DESC, d.rank) AS nth
              FROM pg_catalog.jsonb_array_elements(:reactions::jsonb) AS q(item)
             CROSS JOIN LATERAL (
           SELECT f.shard, f.workspace, f.rank, f.crash_group, f.ctid AS place, (q.item ->> 1)::bigint AS lease
             FROM {schema}.follow f
            WHERE f.shard = :shard AND (:workspace = '' OR f.workspace = :workspace)
              AND f.reaction = q.item ->> 0 AND f.crash_group > 0
              AND f.workspace = q.item ->> 4
              AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= (SELECT {now})
              -- these conditions cannot become joins: rows are read in index order, and the reaction and handler are looked up by key
              AND {include reactions/is_served}
            ORDER BY f.crash_group DESC, f.due_at
            LIMIT :crashed
              FOR UPDATE SKIP LOCKED) AS d
             WHERE pg_catalog.jsonb_typeof(q.item) = 'array') AS c
     WHERE c.nth <= :crashed AND c.shard + 0 = :shard -- tells the planner that there are few rows
       AND c.nth + (SELECT held.n FROM held) <= least(c.crash_group, (SELECT held.smallest FROM held))
), due AS MATERIALIZED (
    SELECT crashed.shard, crashed.workspace, crashed.place, crashed.lease FROM crashed
    UNION ALL
    SELECT c.shard, c.workspace, c.place, c.lease
      FROM (SELECT s.shard, s.workspace, s.place, s.lease, s.turn, pg_catalog.row_number() OVER (ORDER BY s.turn, s.rank) AS nth
              FROM (
            SELECT d.shard, d.workspace, d.place, d.lease, d.rank, pg_catalog.row_number() OVER (PARTITION BY d.workspace ORDER BY d.rank) AS turn
              FROM pg_catalog.jsonb_array_elements(:reactions::jsonb) AS q(item)
             CROSS JOIN LATERAL (
           SELECT f.shard, f.workspace, f.rank, f.ctid AS place, (q.item ->> 1)::bigint AS lease
             FROM {schema}.follow f
            WHERE f.shard = :shard AND (:workspace = '' OR f.workspace = :workspace)
              AND f.reaction = q.item ->> 0 AND f.crash_group = 0
              AND f.workspace = q.item ->> 4
              AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= (SELECT {now})
              -- as above
              AND {include reactions/is_served}
            ORDER BY f.due_at
            LIMIT :share
              FOR UPDATE SKIP LOCKED) AS d
             WHERE pg_catalog.jsonb_typeof(q.item) = 'array') AS s) AS c
     WHERE c.turn <= :share AND c.nth <= :limit - (SELECT pg_catalog.count(*) FROM crashed) AND c.shard + 0 = :shard
)
UPDATE {schema}.follow f
   SET holder = :holder, epoch = f.epoch + 1, until = {now} + due.lease::float8 * interval '1 ms', updated_at = {now},
       delivered = f.due, delivered_epoch = f.epoch + 1, quiet = :quiet = 1
  FROM due
 WHERE f.ctid = due.place AND f.shard = due.shard AND f.workspace = due.workspace
   AND f.holder IS NULL
RETURNING f.workspace, f.reaction, f.stream, f.watermark, f.due, f.epoch, f.until, f.failures, f.deaths, f.crash_group, f.generation
