-- Forgets refusals that are long past.
-- $1 shard, $2 workspace ('' for all), $3 age in ms, $4 limit
DELETE FROM {schema}.attempt a
 WHERE a.shard = $1::smallint AND ($2::text = '' OR a.workspace = $2::text)
   AND a.ctid = ANY (ARRAY(SELECT x.ctid FROM {schema}.attempt x
                            WHERE x.shard = $1::smallint AND ($2::text = '' OR x.workspace = $2::text) AND x.at < {now} - $3::bigint * interval '1 ms'
                            ORDER BY x.at
                            LIMIT $4::bigint))
RETURNING 1
