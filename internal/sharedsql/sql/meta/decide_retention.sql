-- Stores whether servers without settings delete old histories, unless that is stored. Returns no row in that case.
INSERT INTO {schema}.retention (one, by_default)
SELECT 1, :by_default = 1 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
ON CONFLICT (one) DO NOTHING
RETURNING 1
