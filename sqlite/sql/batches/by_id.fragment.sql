-- Selects the batch.
FROM holdfast_batch AS b
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
