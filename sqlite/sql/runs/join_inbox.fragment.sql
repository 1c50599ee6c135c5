-- The signal or the approval that a step waits for.
LEFT JOIN holdfast_signal AS g ON g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND s.status = 'WAITING' AND g.id = (
     SELECT x.id FROM holdfast_signal AS x
      WHERE x.shard = s.shard AND x.workspace = s.workspace AND x.run = s.run AND x.type = s.signal AND x.taken IS NULL
      ORDER BY x.n
      LIMIT 1)
LEFT JOIN holdfast_approval AS a ON s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
