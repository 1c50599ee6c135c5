-- Deletes events of a stream that are below the first one kept. A function of the owner's does, because nobody else may.
SELECT {schema}.drop_events(:shard, :workspace, :stream, :from, :to)
