-- Lists the nodes by name, with the present time.
SELECT n.name, n.version, n.started_at, n.seen_at, n.report{text}, coalesce(n.snapshot_at, {no_time}), coalesce(n.snapshot_by, ''), {now}
  FROM {schema}.node AS n
 WHERE n.name > :after AND :shard IS NOT NULL AND :workspace IS NOT NULL
 ORDER BY n.name
 LIMIT :limit
