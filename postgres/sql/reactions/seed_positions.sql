-- Records for a reaction that streams have new events. A stream that it has not followed
-- yet starts at the beginning or, with :skip, after the current events. The fence is taken
-- shared, and the reaction is locked and so read as it is now: a removed reaction gets no
-- row that would never be deleted.
-- :streams a JSON list of [name, head]; :skip whether current events are left out
WITH {members}, fence AS MATERIALIZED (
    SELECT pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended('follow/' || m.shard::text || '/' || m.workspace || '/' || m.reaction, 0))::text AS held FROM m
), r AS MATERIALIZED (
    SELECT m.shard, m.workspace, m.reaction, m.streams, m.skip, r.priority, r.base
      FROM m JOIN {schema}.reaction r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.name = m.reaction
     WHERE r.state <> 'removed' AND (SELECT pg_catalog.count(fence.held) FROM fence) >= 0
       FOR SHARE OF r
), recorded AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
    SELECT r.shard, r.workspace, r.reaction, j.item ->> 0,
           CASE WHEN r.skip = 1 THEN (j.item ->> 1)::bigint ELSE -1 END, (j.item ->> 1)::bigint,
           {now}, {now} - r.priority::float8 * interval '1 s', r.base, {now}
      FROM r CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(r.streams::jsonb) AS j(item)
     ORDER BY r.shard, r.workspace, r.reaction, (j.item ->> 0) COLLATE "C"
    ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
       SET due = greatest(f.due, excluded.due),
           due_at = CASE WHEN f.due > f.watermark THEN f.due_at ELSE excluded.due_at END,
           rank = CASE WHEN f.due > f.watermark THEN f.rank ELSE excluded.rank END
     WHERE f.due < excluded.due
    RETURNING f.shard, f.workspace, f.reaction
), counted AS (
    SELECT recorded.shard, recorded.workspace, recorded.reaction, pg_catalog.count(*) AS n FROM recorded
     GROUP BY recorded.shard, recorded.workspace, recorded.reaction
)
SELECT m.member, 1, coalesce(counted.n, 0)
  FROM m LEFT JOIN counted ON counted.shard = m.shard AND counted.workspace = m.workspace AND counted.reaction = m.reaction
