-- Removes and records all due notices of one reaction, and waits for those that others have
-- locked: none may be left. The caller must prevent others from collecting for this
-- reaction.
WITH gone AS (
    DELETE FROM {schema}.due d
     WHERE d.shard = :shard AND d.reaction = :reaction AND d.workspace = :workspace
    RETURNING d.shard, d.reaction, d.workspace, d.stream, d.version
), recorded AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
    SELECT g.shard, g.workspace, g.reaction, g.stream, -1, pg_catalog.max(g.version), {now}, {now} - r.priority::float8 * interval '1 s', r.base, {now}
      FROM gone g
      JOIN {schema}.reaction r ON r.shard = g.shard AND r.workspace = g.workspace AND r.name = g.reaction AND r.state <> 'removed'
     {include reactions/merge_due}
    RETURNING 1
)
SELECT 1 FROM recorded
