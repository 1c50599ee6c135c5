-- Takes all marks of one reaction away and notes what they say, and waits for
-- whoever has some of them at this moment: what it leaves must be none. It is for
-- one who keeps all others from gathering for it.
WITH gone AS (
    DELETE FROM {schema}.due d
     WHERE d.shard = :shard AND d.reaction = :reaction AND d.workspace = :workspace
    RETURNING d.shard, d.reaction, d.workspace, d.stream, d.version
), noted AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
    SELECT g.shard, g.workspace, g.reaction, g.stream, -1, pg_catalog.max(g.version), {now}, {now} - r.priority::float8 * interval '1 s', r.base, {now}
      FROM gone g
      JOIN {schema}.reaction r ON r.shard = g.shard AND r.workspace = g.workspace AND r.name = g.reaction AND r.state <> 'removed'
     {include reactions/gathered}
    RETURNING 1
)
SELECT 1 FROM noted
