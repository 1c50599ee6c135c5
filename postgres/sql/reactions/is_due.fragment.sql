-- True if the reaction and workspace of a have a stream that is due at a.now, which is read once: only a stable value can
-- bound an index scan. Otherwise NULL. Streams on which a holder has crashed are few.
coalesce((SELECT true FROM {schema}.follow f
           WHERE f.shard = a.shard AND f.reaction = a.reaction AND f.workspace = a.workspace AND f.crash_group = 0
             AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= a.now
           ORDER BY f.due_at
           LIMIT 1),
         (SELECT true FROM {schema}.follow f
           WHERE f.shard = a.shard AND f.reaction = a.reaction AND f.workspace = a.workspace AND f.crash_group > 0
             AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= a.now
           ORDER BY f.crash_group DESC, f.due_at
           LIMIT 1))
