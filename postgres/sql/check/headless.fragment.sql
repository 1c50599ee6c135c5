-- Returns, of one page of the streams in table {1} whose n.prefix, the name up to the first slash, matches {2}, those for which
-- {3}, and the last stream. Each stream is found from the one before by one lookup, regardless of how many events it has.
-- From a name that does not match, all names with its prefix are skipped, so that a page does not walk over what it does
-- not check. c.rest is the name after the first slash.
SELECT j.nth, j.bad, j.shard, j.workspace, j.stream, ''::text, -1::bigint,
       CASE WHEN j.bad THEN (SELECT pg_catalog.count(*) FROM {schema}.{1} e WHERE e.shard = j.shard AND e.workspace = j.workspace AND e.stream = j.stream) ELSE 0 END,
       CASE WHEN j.bad THEN (SELECT pg_catalog.max(e.version) FROM {schema}.{1} e WHERE e.shard = j.shard AND e.workspace = j.workspace AND e.stream = j.stream) ELSE 0 END
  FROM (SELECT pg_catalog.row_number() OVER (ORDER BY c.shard, c.workspace, c.stream) AS nth, pg_catalog.count(*) OVER () AS size,
               {3} AS bad, c.*
          FROM (WITH RECURSIVE n AS (
                    SELECT :shard AS shard, :workspace COLLATE pg_catalog."C" AS workspace, :stream COLLATE pg_catalog."C" AS stream, '' COLLATE pg_catalog."C" AS prefix, true AS given
                    UNION ALL
                    SELECT x.shard, x.workspace, x.stream, pg_catalog.split_part(x.stream, '/', 1), false
                      FROM n
                     CROSS JOIN LATERAL (
                           SELECT e.shard, e.workspace, e.stream
                             FROM {schema}.{1} e
                            WHERE (e.shard, e.workspace, e.stream) > (n.shard, n.workspace, CASE WHEN n.given OR n.prefix {2} THEN n.stream ELSE n.prefix || '0' END) -- '0' follows '/'
                            ORDER BY e.shard, e.workspace, e.stream
                            LIMIT 1) AS x
                )
                SELECT n.shard, n.workspace, n.stream, n.prefix, pg_catalog.substr(n.stream, pg_catalog.length(n.prefix) + 2) AS rest
                  FROM n
                 WHERE NOT n.given AND n.prefix {2}
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
