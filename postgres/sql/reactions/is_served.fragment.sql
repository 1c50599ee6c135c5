-- True if the caller knows the registered definition of the reaction, and serves handlers of its kind.
(SELECT pg_catalog.jsonb_typeof(q.item -> 2) = 'null' OR (r.events = q.item -> 2 AND r.streams = q.item ->> 3)
                     FROM {schema}.reaction r
                    WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed')
              AND CASE WHEN q.item ->> 5 IS NULL THEN true
                       ELSE (SELECT r.options ->> 'handler'::text = q.item ->> 5
                               FROM {schema}.reaction r
                              WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction)
                        AND (SELECT h.kind = q.item ->> 6
                               FROM {schema}.handler h
                              WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.name = q.item ->> 5) END
