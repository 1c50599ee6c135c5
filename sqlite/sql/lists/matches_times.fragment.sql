-- Tells whether {1} was created and updated in the ranges of a filter.
(:since = 0 OR {1}.created_at >= :since) AND (:until = 0 OR {1}.created_at < :until)
           AND (:updated_since = 0 OR {1}.updated_at >= :updated_since) AND (:updated_until = 0 OR {1}.updated_at < :updated_until)
