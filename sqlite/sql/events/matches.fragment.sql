-- Tells whether the event {1} matches the filter.
(:names = '[]' OR {1}.name IN (SELECT v.value FROM json_each(:names) AS v))
               AND (:correlation = '' OR {1}.correlation = :correlation) AND (:actor = '' OR {1}.actor = :actor)
               AND (:since IS NULL OR {1}.at >= :since) AND (:until IS NULL OR {1}.at < :until)
