-- Keeps a snapshot, unless a newer one is kept, or the stream was closed for good or
-- restarted since: what is kept of it then nobody would delete.
-- ?1 shard, ?2 workspace, ?3 command, ?4 stream, ?5 kind, ?6 version, ?7 data
-- do
INSERT INTO holdfast_snapshot AS s (shard, workspace, stream, kind, version, data, at)
SELECT ?1, ?2, ?4, ?5, ?6, ?7, {now}
 WHERE NOT EXISTS (SELECT 1 FROM holdfast_stream AS t
                    WHERE t.shard = ?1 AND t.workspace = ?2 AND t.name = ?4 AND (t.closed IS 'tombstone' OR t.first > ?6 + 1))
ON CONFLICT (shard, workspace, stream, kind) DO UPDATE
   SET version = excluded.version, data = excluded.data, at = excluded.at
 WHERE s.version < excluded.version
RETURNING version
-- else
SELECT coalesce((SELECT s.version
                   FROM holdfast_snapshot AS s
                  WHERE s.shard = ?1 AND s.workspace = ?2 AND s.stream = ?4 AND s.kind = ?5), -1)
