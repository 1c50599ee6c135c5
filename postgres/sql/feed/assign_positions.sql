-- Numbers the next events of a workspace's feed, unless another statement is doing so.
-- seen is the counter in this statement's snapshot, held the current counter: if they
-- differ, another transaction has numbered events whose rows this statement does not see,
-- and it does nothing.
--
-- Streams are taken in the order of their rank; rows locked by others are skipped. low is
-- the last version that is numbered or gone, high the last version that this run may number:
-- versions have no gaps, so the room that earlier streams leave can be computed. Between
-- low and high, only events visible in the snapshot are numbered; the locked row may be
-- newer, and its due may name an event that is not visible. Events are ordered by time, but
-- within a stream by version, even if the clock went back.
--
-- A follow row is found again by its ctid, as in entities.take_due. A row that was changed a
-- moment ago is not found and keeps its watermark; the numbered events of the stream
-- decide.
WITH seen AS MATERIALIZED (
    SELECT q.shard, q.workspace, q.last
      FROM {schema}.sequence q
     WHERE q.shard = :shard AND q.workspace = :workspace
), held AS MATERIALIZED (
    SELECT q.shard, q.workspace, q.last
      FROM {schema}.sequence q
     WHERE q.shard = :shard AND q.workspace = :workspace
       FOR UPDATE SKIP LOCKED
), turn AS MATERIALIZED (
    SELECT held.shard, held.workspace, held.last
      FROM held JOIN seen ON seen.shard = held.shard AND seen.workspace = held.workspace AND seen.last = held.last
), picked AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.stream, f.watermark, f.due, f.rank, f.place
      FROM turn
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.stream, x.watermark, x.due, x.rank, x.ctid AS place
             FROM {schema}.follow x
            WHERE x.shard = turn.shard AND x.workspace = turn.workspace AND x.reaction = '$feed'
              AND x.holder IS NULL AND NOT x.blocked AND x.due > x.watermark
            ORDER BY x.crash_group DESC, x.due_at -- in the order of the index
            LIMIT :streams
              FOR UPDATE SKIP LOCKED) AS f
), begun AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.stream, p.due, p.rank, p.place,
           greatest(p.watermark,
                    (SELECT s.first - 1 FROM {schema}.stream s WHERE s.shard = p.shard AND s.workspace = p.workspace AND s.name = p.stream),
                    (SELECT pg_catalog.max(o.version) FROM {schema}.feed o WHERE o.shard = p.shard AND o.workspace = p.workspace AND o.stream = p.stream)) AS low
      FROM picked p
), room AS MATERIALIZED (
    SELECT b.shard, b.workspace, b.stream, b.due, b.place, b.low,
           least(b.due, b.low + :events - coalesce(pg_catalog.sum(greatest(b.due - b.low, 0))
                 OVER (ORDER BY b.rank, b.stream ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint) AS high
      FROM begun b
), taken AS MATERIALIZED (
    SELECT r.shard, r.workspace, r.stream, r.place, e.version, pg_catalog.max(e.at) OVER (PARTITION BY r.stream ORDER BY e.version) AS moment
      FROM room r
     CROSS JOIN LATERAL (
           SELECT x.version, x.at
             FROM {schema}.event x
            WHERE x.shard = r.shard AND x.workspace = r.workspace AND x.stream = r.stream AND x.version > r.low AND x.version <= r.high
            ORDER BY x.version
            LIMIT :events) AS e
), numbered AS (
    INSERT INTO {schema}.feed (shard, workspace, position, stream, version)
    SELECT t.shard, t.workspace, turn.last + pg_catalog.row_number() OVER (ORDER BY t.moment, t.stream, t.version), t.stream, t.version
      FROM taken t JOIN turn ON turn.shard = t.shard AND turn.workspace = t.workspace
), counted AS (
    UPDATE {schema}.sequence q
       SET last = turn.last + n.size
      FROM turn JOIN (SELECT t.shard, t.workspace, pg_catalog.count(*) AS size FROM taken t GROUP BY t.shard, t.workspace) AS n
                  ON n.shard = turn.shard AND n.workspace = turn.workspace
     WHERE q.shard = turn.shard AND q.shard = n.shard AND q.workspace = turn.workspace
), done AS (
    SELECT x.shard, x.workspace, x.place, pg_catalog.max(x.mark) AS mark
      FROM (SELECT r.shard, r.workspace, r.place, r.low AS mark FROM room r
             UNION ALL
            SELECT t.shard, t.workspace, t.place, t.version FROM taken t) AS x
     GROUP BY x.shard, x.workspace, x.place
), moved AS (
    UPDATE {schema}.follow f
       SET watermark = done.mark,
           due_at = CASE WHEN done.mark < f.due THEN {now} ELSE f.due_at END, -- goes behind the others
           rank = CASE WHEN done.mark < f.due THEN {now} ELSE f.rank END
      FROM done
     WHERE f.ctid = done.place AND f.shard = done.shard AND f.workspace = done.workspace
       AND f.watermark < done.mark
    RETURNING 1
)
SELECT pg_catalog.count(*) >= :streams OR pg_catalog.bool_or(r.high < r.due) -- more is left
  FROM room r
HAVING EXISTS (SELECT 1 FROM taken) OR EXISTS (SELECT 1 FROM moved)
