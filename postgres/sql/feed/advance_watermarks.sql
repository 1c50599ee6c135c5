-- Does nothing: feed.assign_positions moves the watermarks, too.
SELECT false WHERE :shard IS NULL AND :workspace IS NULL AND :streams IS NULL
