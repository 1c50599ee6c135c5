-- The signal or the approval that a step waits for.
LEFT JOIN LATERAL (
     SELECT g.id, g.payload FROM {schema}.signal g
      WHERE g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND g.type = s.signal AND g.taken IS NULL AND s.status = 'WAITING'
      ORDER BY g.n
      LIMIT 1) AS g ON true
LEFT JOIN LATERAL (
     SELECT a.status, a.actor, a.label, a.content FROM {schema}.approval a
      WHERE s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
      LIMIT 1) AS a ON true
