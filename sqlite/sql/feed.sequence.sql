-- Numbers the next events of a workspace's feed. Streams are taken in the order of
-- their rank. low is the last version that is numbered or gone, high how far this
-- batch may go: versions have no gaps, so what the streams before it leave over can
-- be reckoned. The order is that of time, but in a stream that of versions, also if
-- the clock went back. A script changes many rows of one table only, so the
-- watermarks are moved by feed.advance; what the feed has of a stream counts.
-- ?1 shard, ?2 workspace, ?3 limit of streams, ?4 limit of events
-- look
SELECT 1
  FROM holdfast_follow AS f
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = '$feed'
   AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
 LIMIT 1
-- do
INSERT INTO holdfast_feed (shard, workspace, position, stream, version)
SELECT ?1, ?2, q.last + row_number() OVER (ORDER BY t.moment, t.stream, t.version), t.stream, t.version
  FROM (SELECT r.stream, e.version, max(e.at) OVER (PARTITION BY r.stream ORDER BY e.version) AS moment
          FROM (SELECT b.stream, b.low,
                       min(b.due, b.low + ?4 - coalesce(sum(max(b.due - b.low, 0))
                           OVER (ORDER BY b.rank, b.stream ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS high
                  FROM (SELECT f.stream, f.due, f.rank,
                               max(f.watermark,
                                   coalesce((SELECT s.first - 1 FROM holdfast_stream AS s
                                              WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = f.stream), -1),
                                   coalesce((SELECT max(o.version) FROM holdfast_feed AS o
                                              WHERE o.shard = ?1 AND o.workspace = ?2 AND o.stream = f.stream), -1)) AS low
                          FROM holdfast_follow AS f
                         WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = '$feed'
                           AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
                         ORDER BY f.crash_group, f.rank -- as the index has it
                         LIMIT +?3) AS b) AS r
         CROSS JOIN holdfast_event AS e
            ON e.shard = ?1 AND e.workspace = ?2 AND e.stream = r.stream AND e.version > r.low AND e.version <= r.high) AS t
  JOIN holdfast_sequence AS q ON q.shard = ?1 AND q.workspace = ?2
-- then
UPDATE holdfast_sequence AS q
   SET last = max(q.last, coalesce((SELECT max(o.position) FROM holdfast_feed AS o WHERE o.shard = ?1 AND o.workspace = ?2), 0))
 WHERE q.shard = ?1 AND q.workspace = ?2
RETURNING 1
