-- Moves one entity from a single expected status (:one; NULL if there are several), or
-- does nothing and returns nothing.
WITH moved AS (
    UPDATE {schema}.entity e
       SET status = :target, version = e.version + 1, data = coalesce(:data::jsonb, e.data), updated_at = {now}
     WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
       AND e.status = :one AND e.phase = 'free'
       AND (:want IS NULL OR e.version = :want)
       AND :froms IS NOT NULL
       AND {include registry/is_current}
    RETURNING e.status, e.version, e.data, e.created_at, e.updated_at
), {include history/write}
    SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, moved.version, :event,
           pg_catalog.json_build_object('from', :one, 'to', moved.status, 'note', :note::json),
           :correlation, :causation, :actor, moved.updated_at
      FROM moved
)
SELECT moved.status, moved.version, moved.data::text, moved.created_at, moved.updated_at FROM moved
