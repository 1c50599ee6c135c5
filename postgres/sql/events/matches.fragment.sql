-- Tells whether the event {1} matches the filter: names (a JSON list, '[]' for any), correlation and actor ('' for any), since
-- and until in ms since 1970 (NULL for any).
(:names = '[]' OR {1}.name IN (SELECT v.name FROM pg_catalog.json_array_elements_text(:names::json) AS v(name)))
               AND (:correlation = '' OR {1}.correlation = :correlation) AND (:actor = '' OR {1}.actor = :actor)
               AND (:since IS NULL OR {1}.at >= pg_catalog.to_timestamp(:since::float8 / 1000::float8))
               AND (:until IS NULL OR {1}.at < pg_catalog.to_timestamp(:until::float8 / 1000::float8))
