-- Removes due notices and records them on the row of the reaction on its stream, which is
-- created if missing. Notices that others are collecting are skipped. Notices of a reaction
-- that does not exist any more are only removed.
-- Rows are created only under a shared lock on the reaction in its workspace, so that a
-- rebuild or a registration can prevent new ones; their notices wait.
-- The notices of each reaction in each workspace are read from a key on: reading from the
-- beginning would walk over removed rows that are not vacuumed yet, and notices that keep
-- arriving in front would delay those behind.
-- Returns how many notices were removed, and for each reaction and workspace the position
-- reached and the number.
-- :reactions a JSON list of [name, workspace, after which stream, version]
WITH picked AS MATERIALIZED (
    SELECT d.shard, d.reaction, d.workspace, d.stream, d.version, d.place
      FROM pg_catalog.jsonb_array_elements(:reactions::jsonb) AS q(item)
     CROSS JOIN LATERAL (
           SELECT x.shard, x.reaction, x.workspace, x.stream, x.version, x.ctid AS place
             FROM {schema}.due x
            WHERE x.shard = :shard AND x.reaction = q.item ->> 0 AND (:workspace = '' OR x.workspace = :workspace)
              AND x.workspace = q.item ->> 1 AND (x.stream, x.version) > (q.item ->> 2, (q.item ->> 3)::bigint)
            ORDER BY x.stream, x.version
            LIMIT :limit
              FOR UPDATE SKIP LOCKED) AS d
     WHERE pg_catalog.jsonb_typeof(q.item) = 'array' AND d.shard + 0 = :shard -- tells the planner that there are few rows
), open AS MATERIALIZED (
    SELECT k.reaction, k.workspace
      FROM (SELECT DISTINCT p.reaction, p.workspace FROM picked p) AS k
     WHERE pg_catalog.pg_try_advisory_xact_lock_shared(pg_catalog.hashtextextended('follow/' || :shard::text || '/' || k.workspace || '/' || k.reaction, 0))
), gone AS (
    DELETE FROM {schema}.due d
     USING picked p JOIN open o ON o.reaction = p.reaction AND o.workspace = p.workspace
     WHERE d.ctid = p.place AND d.shard = ANY (ARRAY[p.shard]) AND d.reaction = p.reaction AND d.workspace = p.workspace
       AND d.stream = p.stream AND d.version = p.version
    RETURNING d.shard, d.reaction, d.workspace, d.stream, d.version
), recorded AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
    SELECT g.shard, g.workspace, g.reaction, g.stream, -1, pg_catalog.max(g.version), {now}, {now} - r.priority::float8 * interval '1 s', r.base, {now}
      FROM gone g
      JOIN {schema}.reaction r ON r.shard = ANY (ARRAY[g.shard]) AND r.workspace = g.workspace AND r.name = g.reaction AND r.state <> 'removed'
     {include reactions/merge_due}
    RETURNING 1
)
SELECT DISTINCT ON (p.reaction, p.workspace) (SELECT pg_catalog.count(*) FROM gone), p.reaction, p.workspace, p.stream, p.version,
       pg_catalog.count(*) OVER (PARTITION BY p.reaction, p.workspace)
  FROM picked p
 ORDER BY p.reaction, p.workspace, p.stream DESC, p.version DESC
