-- A page of the items of the batch that may be deleted.
(SELECT i.key FROM holdfast_item AS i
                WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key > :after AND i.sweep_at IS NULL
                ORDER BY i.key
                LIMIT :room) AS d
