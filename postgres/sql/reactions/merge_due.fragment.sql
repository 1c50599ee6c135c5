-- Merges the due notices of a stream into the row of the reaction.
GROUP BY g.shard, g.workspace, g.reaction, g.stream, r.priority, r.base
     ORDER BY g.shard, g.workspace, g.reaction, g.stream
    ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
       SET due = greatest(f.due, excluded.due),
           due_at = CASE WHEN f.due > f.watermark THEN f.due_at ELSE excluded.due_at END,
           rank = CASE WHEN f.due > f.watermark THEN f.rank ELSE excluded.rank END
