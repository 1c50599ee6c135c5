-- Selects the keys of the items that batches.finalize accepts: succeeded, undecided, and named, or all if :keys is NULL.
(SELECT i.key FROM (SELECT DISTINCT k.value AS key FROM json_each(:keys) AS k) AS k CROSS JOIN holdfast_item AS i
         WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = k.key AND i.state = 'succeeded' AND i.decision IS NULL
        UNION ALL
        SELECT i.key FROM holdfast_item AS i
         WHERE :keys IS NULL AND i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.state = 'succeeded' AND i.decision IS NULL) AS u
