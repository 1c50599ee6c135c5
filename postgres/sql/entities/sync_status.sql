-- Copies the status of a row in a user's own table into the entity beside it, unless the
-- entity is claimed, and returns the entity. Returns nothing if another statement has just
-- created the entity: the caller retries. The row is locked first, and the locked row
-- decides.
WITH {members}, cur AS MATERIALIZED (
    SELECT m.member, m.command, m.status AS seen, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
       FOR UPDATE OF e
), made AS (
    INSERT INTO {schema}.entity AS e (shard, workspace, lifecycle, id, status, version, data, side, created_at, updated_at)
    SELECT m.shard, m.workspace, m.lifecycle, m.entity, m.status, 0, '{}', true, {now}, {now}
      FROM m
     WHERE m.member NOT IN (SELECT cur.member FROM cur)
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}
), moved AS (
    UPDATE {schema}.entity e
       SET status = cur.seen, version = cur.version + 1, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.phase = 'free' AND cur.status <> cur.seen
    RETURNING e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}
), fresh AS (
    SELECT made.* FROM made
    UNION ALL
    SELECT moved.* FROM moved
), result AS (
    SELECT 1 AS applied, fresh.shard, fresh.workspace, fresh.lifecycle, fresh.id, {include entities/columns fresh} FROM fresh
    UNION ALL
    SELECT 0, cur.shard, cur.workspace, cur.lifecycle, cur.id, {include entities/columns cur} FROM cur
     WHERE cur.phase <> 'free' OR cur.status = cur.seen
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$entity/' || m.lifecycle || '/' || m.entity, fresh.version, 'seen',
           pg_catalog.json_build_object('to', fresh.status), NULL, NULL, NULL, fresh.updated_at
      FROM m JOIN fresh ON fresh.shard = m.shard AND fresh.workspace = m.workspace AND fresh.lifecycle = m.lifecycle AND fresh.id = m.entity
    {due_notices}
SELECT m.member, coalesce(result.applied, 0), {include entities/result_columns result}
  FROM m LEFT JOIN result ON result.shard = m.shard AND result.workspace = m.workspace AND result.lifecycle = m.lifecycle AND result.id = m.entity
