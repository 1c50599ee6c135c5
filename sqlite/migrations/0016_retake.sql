-- Streams of a worker that crashed are retaken as a group; a reset waits for the end of a lease.
-- min_reader: 15

-- crash_group is how many streams with one, this one included, one holder may have in hand at once after a crash: as many
-- as the holder had that crashed, and half after each further crash. 0: nobody has crashed.
-- reset_requested has the end of the lease reset the stream.
ALTER TABLE holdfast_follow ADD COLUMN crash_group INTEGER NOT NULL DEFAULT 0 CHECK (crash_group >= 0);
ALTER TABLE holdfast_follow ADD COLUMN reset_requested INTEGER NOT NULL DEFAULT 0 CHECK (reset_requested IN (0, 1));
UPDATE holdfast_follow SET crash_group = 1 WHERE deaths > 0;
DROP INDEX holdfast_follow_ready;
CREATE INDEX holdfast_follow_ready ON holdfast_follow (shard, reaction, crash_group, rank)
    WHERE holder IS NULL AND blocked = 0 AND due > watermark;
CREATE INDEX holdfast_follow_suspect ON holdfast_follow (shard, holder) WHERE holder IS NOT NULL AND crash_group > 0;
