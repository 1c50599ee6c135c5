-- Reads the next events of several streams, filtered by name.
-- :streams a JSON list of [workspace, stream, after, up to, names or null]
SELECT q.nth - 1, e.id, e.version, e.name, e.data::text, coalesce(e.correlation, ''), coalesce(e.causation, ''), coalesce(e.actor, ''),
       e.at, e.subject
  FROM pg_catalog.jsonb_array_elements(:streams::jsonb) WITH ORDINALITY AS q(item, nth)
 CROSS JOIN LATERAL (
       SELECT x.id, x.version, x.name, x.data, x.correlation, x.causation, x.actor, x.at, '' AS subject
         FROM {schema}.history x
        WHERE x.shard = :shard AND x.workspace = q.item ->> 0 AND x.stream = q.item ->> 1
          AND x.version > (q.item ->> 2)::bigint AND x.version <= (q.item ->> 3)::bigint
          AND (pg_catalog.jsonb_typeof(q.item -> 4) = 'null' OR q.item -> 4 ? x.name)
        ORDER BY x.version
        LIMIT :limit) AS e
 WHERE :workspace IS NOT NULL
 ORDER BY q.nth, e.version
