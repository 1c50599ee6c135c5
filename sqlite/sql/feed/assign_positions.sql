-- Numbers the next events of a workspace's feed. Streams are taken in the order of their
-- rank. low is the last version that is numbered or gone, high the last version that this
-- run may number: versions have no gaps, so the room that earlier streams leave can be
-- computed. Events are ordered by time, but within a stream by version, even if the clock
-- went back. A script changes many rows of one table only, so feed.advance_watermarks moves the
-- watermarks; the numbered events of a stream decide.
-- look
SELECT 1
  FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = '$feed'
   AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
 LIMIT 1
-- do
INSERT INTO holdfast_feed (shard, workspace, position, stream, version)
SELECT :shard, :workspace, q.last + row_number() OVER (ORDER BY t.moment, t.stream, t.version), t.stream, t.version
  FROM (SELECT r.stream, e.version, max(e.at) OVER (PARTITION BY r.stream ORDER BY e.version) AS moment
          FROM (SELECT b.stream, b.low,
                       min(b.due, b.low + :events - coalesce(sum(max(b.due - b.low, 0))
                           OVER (ORDER BY b.rank, b.stream ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS high
                  FROM (SELECT f.stream, f.due, f.rank,
                               max(f.watermark,
                                   coalesce((SELECT s.first - 1 FROM holdfast_stream AS s
                                              WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = f.stream), -1),
                                   coalesce((SELECT max(o.version) FROM holdfast_feed AS o
                                              WHERE o.shard = :shard AND o.workspace = :workspace AND o.stream = f.stream), -1)) AS low
                          FROM holdfast_follow AS f
                         WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = '$feed'
                           AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
                         ORDER BY f.crash_group, f.due_at -- in the order of the index
                         LIMIT :streams) AS b) AS r
         CROSS JOIN holdfast_event AS e
            ON e.shard = :shard AND e.workspace = :workspace AND e.stream = r.stream AND e.version > r.low AND e.version <= r.high) AS t
  JOIN holdfast_sequence AS q ON q.shard = :shard AND q.workspace = :workspace
-- then
UPDATE holdfast_sequence AS q
   SET last = max(q.last, coalesce((SELECT max(o.position) FROM holdfast_feed AS o WHERE o.shard = :shard AND o.workspace = :workspace), 0))
 WHERE q.shard = :shard AND q.workspace = :workspace
RETURNING 0 -- feed.advance_watermarks returns whether more is left
