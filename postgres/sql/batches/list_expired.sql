-- Lists items whose leases have expired, with the number of hand-outs lost in a row, this one included.
SELECT b.workspace, b.id, b.handler, i.key, i.epoch, CASE WHEN i.quiet THEN i.lost + 1 ELSE 0 END
  FROM {schema}.batch b
 CROSS JOIN LATERAL (
       SELECT i.key, i.epoch, i.until, i.quiet, i.lost FROM {schema}.item i
        WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= (SELECT {now})
        ORDER BY i.until
        LIMIT :limit) AS i
 WHERE b.shard + 0 = :shard AND (:workspace = '' OR b.workspace = :workspace) AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
 ORDER BY i.until
 LIMIT :limit
