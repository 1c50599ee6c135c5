-- Moves entities from one of the named statuses to another, each if it is in that status
-- and at the expected version, if there is one. Rows are locked first, in key order, and
-- the locked rows decide and are returned: a refused caller gets the current status, and no
-- member is looked up a second time. The statement fails as a whole if it moved fewer
-- entities than it decided to.
-- :one from (NULL if there are several); :froms a JSON list
WITH {members}, cur AS (
    SELECT e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at, e.updated_at, e.phase,
           m.member, m.command, m.one, m.froms, m.target, m.want, m.data AS replacement, m.event, m.note,
           m.correlation, m.causation, m.actor
      {include entities/lock}
), decided AS (
    SELECT cur.*, {now} AS at,
           CASE WHEN cur.one IS NULL THEN cur.froms::jsonb ? cur.status ELSE cur.one = cur.status END
           AND (cur.want IS NULL OR cur.want = cur.version) AND cur.phase = 'free' AS moves
      FROM cur
), moved AS (
    UPDATE {schema}.entity e
       SET status = j.target, version = j.version + 1, data = coalesce(j.replacement::jsonb, j.data), updated_at = j.at
      FROM decided j
     WHERE e.shard = ANY (ARRAY[j.shard]) AND e.workspace = j.workspace AND e.lifecycle = j.lifecycle AND e.id = j.id AND j.moves
    RETURNING e.shard, e.workspace, e.lifecycle, e.id, e.version, e.updated_at,
              j.command, j.status AS was, j.target, j.event, j.note, j.correlation, j.causation, j.actor
), {include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version, moved.event,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.target, 'note', moved.note::json),
           moved.correlation, moved.causation, moved.actor, moved.updated_at
      FROM moved
    {due_notices}
SELECT m.member,
       CASE WHEN j.moves THEN 1 / (SELECT ((SELECT pg_catalog.count(*) FROM moved) = (SELECT pg_catalog.count(*) FROM decided WHERE decided.moves))::integer)
            WHEN j.id IS NULL AND EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                                                                           AND e.lifecycle = m.lifecycle AND e.id = m.entity) THEN 2
            ELSE 0 END,
       coalesce(CASE WHEN j.moves THEN j.target ELSE j.status END, ''), coalesce(j.version + j.moves::integer, -1),
       coalesce(CASE WHEN j.moves THEN j.replacement::jsonb END, j.data, 'null')::text,
       coalesce(j.created_at, 'epoch'), coalesce(CASE WHEN j.moves THEN j.at ELSE j.updated_at END, 'epoch')
  FROM m LEFT JOIN decided j ON j.member = m.member
