-- Returns whether a shard has histories other than those of API keys.
SELECT EXISTS (SELECT 1 FROM {schema}.history AS h
                WHERE h.shard = :shard AND :workspace IS NOT NULL AND NOT (h.stream >= '$key/' AND h.stream < '$key0')
                LIMIT 1)
