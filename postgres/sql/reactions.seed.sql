-- Notes for a reaction that there is more on some streams. One that it has not
-- followed yet begins at the beginning or, where that is asked for, behind what
-- is there now.
-- $4 reaction, $5 streams, a JSON list of [name, head], $6 whether what is there
-- now is left out
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, reaction, streams, skip, member)
), noted AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
    SELECT m.shard, m.workspace, m.reaction, j.item ->> 0,
           CASE WHEN m.skip = 1 THEN (j.item ->> 1)::bigint ELSE -1 END, (j.item ->> 1)::bigint,
           {now}, {now} - r.priority * interval '1 s', r.base, {now}
      FROM m JOIN {schema}.reaction r ON r.shard = m.shard AND r.workspace = m.workspace AND r.name = m.reaction AND r.state <> 'removed'
     CROSS JOIN LATERAL jsonb_array_elements(m.streams::jsonb) AS j(item)
     ORDER BY m.shard, m.workspace, m.reaction, (j.item ->> 0) COLLATE "C"
    ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
       SET due = greatest(f.due, excluded.due),
           due_at = CASE WHEN f.due > f.watermark THEN f.due_at ELSE excluded.due_at END,
           rank = CASE WHEN f.due > f.watermark THEN f.rank ELSE excluded.rank END
     WHERE f.due < excluded.due
    RETURNING f.shard, f.workspace, f.reaction
), fence AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(hashtextextended('follow/' || m.shard || '/' || m.workspace || '/' || m.reaction, 0))::text AS held FROM m
), counted AS (
    SELECT noted.shard, noted.workspace, noted.reaction, count(*) AS n FROM noted
     GROUP BY noted.shard, noted.workspace, noted.reaction
)
SELECT m.member, 1, coalesce(counted.n, 0)
  FROM m LEFT JOIN counted ON counted.shard = m.shard AND counted.workspace = m.workspace AND counted.reaction = m.reaction
 WHERE (SELECT count(fence.held) FROM fence) >= 0
