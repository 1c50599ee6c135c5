-- Takes marks away and notes what they say on the row of the reaction on its
-- stream, which is made where there is none. What others are gathering is
-- skipped. Marks of a reaction that is not there any more are only taken away.
-- Rows are made only under a shared lock on the reaction in its workspace, so that
-- a rebuild or a registration can keep new ones away; their marks wait.
-- The marks of each reaction in each workspace are read on from a key: from the beginning, what was taken
-- away and is not yet vacuumed would be walked over each time, and marks that keep
-- coming in front would keep those behind waiting.
-- Answers how many marks are gone, how far each reaction has come in each workspace, and with how
-- many.
-- :reactions a JSON list of [name, workspace, and behind which stream, version]
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
     WHERE pg_catalog.jsonb_typeof(q.item) = 'array' AND d.shard + 0 = :shard -- few, for the planner
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
), noted AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
    SELECT g.shard, g.workspace, g.reaction, g.stream, -1, pg_catalog.max(g.version), {now}, {now} - r.priority::float8 * interval '1 s', r.base, {now}
      FROM gone g
      JOIN {schema}.reaction r ON r.shard = ANY (ARRAY[g.shard]) AND r.workspace = g.workspace AND r.name = g.reaction AND r.state <> 'removed'
     {include reactions/gathered}
    RETURNING 1
)
SELECT DISTINCT ON (p.reaction, p.workspace) (SELECT pg_catalog.count(*) FROM gone), p.reaction, p.workspace, p.stream, p.version,
       pg_catalog.count(*) OVER (PARTITION BY p.reaction, p.workspace)
  FROM picked p
 ORDER BY p.reaction, p.workspace, p.stream DESC, p.version DESC
