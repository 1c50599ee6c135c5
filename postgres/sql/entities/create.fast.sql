-- Creates one entity, with its first event, or does nothing and returns nothing.
WITH made AS (
    INSERT INTO {schema}.entity
        (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
    SELECT :shard, :workspace, :lifecycle, :entity, :status, 0, :data::jsonb, t.now, t.now
      FROM (SELECT {now} AS now) AS t
     WHERE {include registry/is_current}
       AND CASE WHEN EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity)
                THEN false
                ELSE pg_catalog.pg_advisory_xact_lock({include entities/id_lock :})::text IS NOT NULL END
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING data, created_at
), {include history/write}
    SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, 0, 'created',
           pg_catalog.json_build_object('to', :status), :correlation, :causation, :actor, made.created_at
      FROM made
)
SELECT :status, 0::bigint, made.data::text, made.created_at, made.created_at FROM made
