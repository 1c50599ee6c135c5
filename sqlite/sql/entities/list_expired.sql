-- Lists expired leases, the oldest first, with the number of hand-outs lost in a row, this one included.
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       e.holder, e.claimed_at, e.side, coalesce(e.plan, ''), CASE WHEN e.quiet THEN e.lost + 1 ELSE 0 END
  FROM holdfast_entity AS e INDEXED BY holdfast_entity_held
 WHERE e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace)
   AND e.lifecycle IN (SELECT l.value FROM json_each(:lifecycles) AS l) AND e.holder IS NOT NULL AND e.until <= {now}
 ORDER BY e.until
 LIMIT :limit
