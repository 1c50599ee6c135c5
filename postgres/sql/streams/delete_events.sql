-- Deletes events of a stream below its first retained version. A function of the schema's owner deletes them, because the runtime role may not.
SELECT {schema}.drop_events(:shard, :workspace, :stream, :from, :to)
