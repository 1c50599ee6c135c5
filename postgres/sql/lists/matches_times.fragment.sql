-- Tells whether {1} was created and updated in the ranges of a filter, in ms since 1970 (0 for no limit).
(:since = 0 OR {1}.created_at >= pg_catalog.to_timestamp(:since::float8 / 1000::float8))
           AND (:until = 0 OR {1}.created_at < pg_catalog.to_timestamp(:until::float8 / 1000::float8))
           AND (:updated_since = 0 OR {1}.updated_at >= pg_catalog.to_timestamp(:updated_since::float8 / 1000::float8))
           AND (:updated_until = 0 OR {1}.updated_at < pg_catalog.to_timestamp(:updated_until::float8 / 1000::float8))
