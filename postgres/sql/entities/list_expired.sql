-- Lists expired leases, the oldest first, with the number of hand-outs lost in a row, this one included.
-- :lifecycles a JSON list
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       e.holder, e.claimed_at, e.side, coalesce(e.plan::text, ''), CASE WHEN e.quiet THEN e.lost + 1 ELSE 0 END
  FROM {schema}.entity e
 WHERE e.shard + 0 = :shard AND (:workspace = '' OR e.workspace = :workspace)
   AND :lifecycles::jsonb ? e.lifecycle AND e.holder IS NOT NULL AND e.until <= (SELECT {now})
 ORDER BY e.until
 LIMIT :limit
