-- Deletes minutes older than :age, the oldest first, and nodes not seen for so long.
WITH minutes AS MATERIALIZED (
    SELECT o.ctid AS place
      FROM {schema}.node_minute o
     WHERE o.minute < (SELECT {now} - :age::float8 * interval '1 ms') AND :shard IS NOT NULL AND :workspace IS NOT NULL
     ORDER BY o.minute, o.node
     LIMIT :limit
       FOR UPDATE SKIP LOCKED
), nodes AS MATERIALIZED (
    SELECT o.ctid AS place
      FROM {schema}.node o
     WHERE o.seen_at < (SELECT {now} - :age::float8 * interval '1 ms')
     ORDER BY o.name
     LIMIT :limit
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.node n USING nodes o WHERE n.ctid = o.place RETURNING 1
), old AS (
    DELETE FROM {schema}.node_minute c USING minutes o WHERE c.ctid = o.place RETURNING 1
)
SELECT 1 FROM gone UNION ALL SELECT 1 FROM old
