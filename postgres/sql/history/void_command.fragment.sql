-- Voids a command, so that it can never be applied, or returns the event that it wrote, in the table {1}.
-- The insert waits for a transaction that is about to write that event.
WITH {members}, made AS (
    INSERT INTO {schema}.{1} (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.id, 0, m.workspace, '$void/' || m.id::text, 0, 'void', '{}', {now}
      FROM m
     ORDER BY m.shard, m.id
    ON CONFLICT DO NOTHING
    RETURNING shard, id, version, name, data, at
), found AS (
    SELECT m.member, e.id, e.version, e.stream, e.name, e.data, e.at
      FROM m CROSS JOIN LATERAL (
           SELECT e.id, e.version, e.stream, e.name, e.data, e.at FROM {schema}.{1} e
            WHERE e.shard = m.shard AND e.workspace = m.workspace AND e.id = m.id
            ORDER BY e.n DESC -- uses the index with this order
            LIMIT 1) AS e
)
SELECT m.member, CASE WHEN made.id IS NOT NULL THEN 1 WHEN found.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(made.version, found.version, -1), coalesce(pg_catalog.left(found.stream, 6) = '$void/', true), coalesce(made.name, found.name, ''),
       coalesce(made.data, found.data, 'null')::text, coalesce(made.at, found.at, 'epoch')
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.id = m.id
  LEFT JOIN found ON found.member = m.member
