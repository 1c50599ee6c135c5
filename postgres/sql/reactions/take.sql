-- Takes streams on which a reaction has something to do, of each workspace as many as
-- its share, in the order of their rank. Taking adds one to the epoch; updated_at then is when it was taken. All that is due
-- counts as delivered, unless reactions.deliver says less. What others
-- are taking is skipped. Streams on which a holder has crashed come first, the largest groups
-- before the others; a holder gets so many of them that it has no more in hand than the
-- group of any of them allows, those in its hands included. Rows are found again by their place, as in entities.resume. Who knows another
-- definition of a reaction than the one registered takes nothing of it.
-- A reaction that names a handler is taken by those who serve handlers of its kind.
-- :reactions a JSON list of [name, lease in ms, events or null, streams, workspace, handler or null, its kind];
-- :crashed limit of streams among them on which a holder has crashed; :quiet whether the holder is elsewhere, and quiet until it is heard
-- of
WITH hand AS MATERIALIZED (
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
              AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= {now}
              -- conditions that no join can be made of: the rows are read in their order, and what they need is looked up by its key
              AND {include reactions/wanted}
            ORDER BY f.crash_group DESC, f.rank
            LIMIT :crashed
              FOR UPDATE SKIP LOCKED) AS d
             WHERE pg_catalog.jsonb_typeof(q.item) = 'array') AS c
     WHERE c.nth <= :crashed AND c.shard + 0 = :shard -- few, for the planner
       AND c.nth + (SELECT hand.n FROM hand) <= least(c.crash_group, (SELECT hand.smallest FROM hand))
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
              AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= {now}
              -- as above
              AND {include reactions/wanted}
            ORDER BY f.rank
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
