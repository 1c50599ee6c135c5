-- True if the reaction and workspace of a have a stream that is due. Streams on which a holder has crashed are few.
(EXISTS (SELECT 1 FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
          WHERE f.shard = a.shard AND f.reaction = a.reaction AND f.workspace = a.workspace AND f.crash_group = 0
            AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now})
 OR EXISTS (SELECT 1 FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
             WHERE f.shard = a.shard AND f.reaction = a.reaction AND f.workspace = a.workspace AND f.crash_group > 0
               AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now}))
