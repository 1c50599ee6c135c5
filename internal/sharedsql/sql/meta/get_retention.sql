-- Returns whether servers without settings delete old histories, if that is decided.
SELECT r.by_default FROM {schema}.retention AS r WHERE r.one = 1 AND :shard IS NOT NULL AND :workspace IS NOT NULL
