-- Returns the shard of a workspace that has one.
SELECT w.shard FROM {schema}.workspace AS w WHERE w.name = :workspace AND :shard IS NOT NULL
