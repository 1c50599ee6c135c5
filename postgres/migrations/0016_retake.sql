-- Streams of a worker that crashed are retaken as a group; a reset waits for the end of a lease.
-- min_reader: 15

-- crash_group is how many streams with one, this one included, one holder may have in hand at once after a crash: as many
-- as the holder had that crashed, and half after each further crash. 0: nobody has crashed.
-- reset_requested has the end of the lease reset the stream.
ALTER TABLE {schema}.follow
    ADD COLUMN crash_group integer NOT NULL DEFAULT 0,
    ADD COLUMN reset_requested boolean NOT NULL DEFAULT false;
UPDATE {schema}.follow SET crash_group = 1 WHERE deaths > 0;
DROP INDEX {schema}.follow_ready;
CREATE INDEX follow_ready ON {schema}.follow (shard, reaction, crash_group DESC, rank)
    WHERE holder IS NULL AND NOT blocked AND due > watermark;
CREATE INDEX follow_suspect ON {schema}.follow (shard, holder) WHERE holder IS NOT NULL AND crash_group > 0;
