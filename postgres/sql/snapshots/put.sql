-- Stores a snapshot, unless a newer one is stored, or the stream has been closed by a
-- tombstone or restarted since: such a snapshot would never be deleted. The stream is locked
-- and so read as it is now; a transaction that closes it waits, and deletes the snapshot
-- afterwards. The statement itself never waits: a transaction that has the row or is
-- inserting it stores a snapshot too, and a wait could end in a deadlock over an optional
-- row.
WITH {members}, open AS MATERIALIZED (
    SELECT m.member
      FROM m JOIN {schema}.stream s ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.stream
     WHERE s.closed IS DISTINCT FROM 'tombstone' AND s.first <= m.version + 1
       FOR KEY SHARE OF s SKIP LOCKED
), fits AS MATERIALIZED (
    SELECT open.member FROM open
     UNION ALL
    SELECT m.member FROM m
     WHERE (SELECT true FROM {schema}.stream s WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream LIMIT 1) IS NULL
), cur AS (
    SELECT s.shard, s.workspace, s.stream, s.kind, s.version
      FROM m JOIN {schema}.snapshot s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.stream = m.stream AND s.kind = m.kind
     ORDER BY m.shard, s.workspace, s.stream, s.kind
       FOR UPDATE OF s SKIP LOCKED
), moved AS (
    UPDATE {schema}.snapshot s
       SET version = m.version, data = m.data::json, at = {now}
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.stream = m.stream AND cur.kind = m.kind
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.stream = m.stream AND s.kind = m.kind
       AND cur.version < m.version AND m.member IN (SELECT fits.member FROM fits)
    RETURNING m.member, s.version
), made AS (
    INSERT INTO {schema}.snapshot (shard, workspace, stream, kind, version, data, at)
    SELECT m.shard, m.workspace, m.stream, m.kind, m.version, m.data::json, {now}
      FROM m
     WHERE CASE WHEN m.member NOT IN (SELECT fits.member FROM fits) OR EXISTS (SELECT 1 FROM {schema}.snapshot s WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace
                                                                 AND s.stream = m.stream AND s.kind = m.kind)
                THEN false
                ELSE pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('snapshot/' || m.shard::text || '/' || m.workspace || '/' || m.kind || '/' || m.stream, 0)) END
    ON CONFLICT (shard, workspace, stream, kind) DO NOTHING
    RETURNING shard, workspace, stream, kind, version
)
SELECT m.member,
       CASE WHEN moved.member IS NOT NULL OR made.version IS NOT NULL THEN 1 ELSE 0 END,
       coalesce(moved.version, made.version, cur.version, -1)
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.stream = m.stream AND made.kind = m.kind
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.stream = m.stream AND cur.kind = m.kind
