-- Stores a snapshot, unless a newer one is stored, or the stream has been closed by a tombstone or restarted since: such a snapshot would never be deleted.
-- do
INSERT INTO holdfast_snapshot AS s (shard, workspace, stream, kind, version, data, at)
SELECT :shard, :workspace, :stream, :kind, :version, :data, {now}
 WHERE NOT EXISTS (SELECT 1 FROM holdfast_stream AS t
                    WHERE t.shard = :shard AND t.workspace = :workspace AND t.name = :stream AND (t.closed IS 'tombstone' OR t.first > :version + 1))
ON CONFLICT (shard, workspace, stream, kind) DO UPDATE
   SET version = excluded.version, data = excluded.data, at = excluded.at
 WHERE s.version < excluded.version
RETURNING version
-- else
SELECT coalesce((SELECT s.version
                   FROM holdfast_snapshot AS s
                  WHERE s.shard = :shard AND s.workspace = :workspace AND s.stream = :stream AND s.kind = :kind), -1)
