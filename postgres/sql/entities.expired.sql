-- Holds that have run out, the oldest first, and how many hand-outs in a row are lost by that.
-- $1 shard, $2 workspace ('' for all), $3 lifecycles as a JSON list, $4 limit
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       e.holder, e.claimed_at, e.side, coalesce(e.plan::text, ''), CASE WHEN e.quiet THEN e.lost + 1 ELSE 0 END
  FROM {schema}.entity e
 WHERE e.shard + 0 = $1::smallint AND ($2::text = '' OR e.workspace = $2::text)
   AND $3::text::jsonb ? e.lifecycle AND e.holder IS NOT NULL AND e.until <= (SELECT {now})
 ORDER BY e.until
 LIMIT $4::bigint
