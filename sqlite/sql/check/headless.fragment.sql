-- Returns, of one page of the streams in holdfast_{1} whose n.prefix, the name up to the first slash, matches {2}, those for
-- which {3}, and the last stream. Each stream is found from the one before by one lookup, regardless of how many events it
-- has. From a name that does not match, all names with its prefix are skipped. c.rest is the name after the first slash.
SELECT j.nth, j.bad, j.shard, j.workspace, j.stream, '', -1,
       CASE WHEN j.bad THEN (SELECT count(*) FROM holdfast_{1} AS e WHERE e.shard = j.shard AND e.workspace = j.workspace AND e.stream = j.stream) ELSE 0 END,
       CASE WHEN j.bad THEN (SELECT max(e.version) FROM holdfast_{1} AS e WHERE e.shard = j.shard AND e.workspace = j.workspace AND e.stream = j.stream) ELSE 0 END
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, c.stream) AS nth, count(*) OVER () AS size,
               {3} AS bad, c.*
          FROM (WITH RECURSIVE n(shard, workspace, stream, prefix, given) AS (
                    SELECT :shard, :workspace, :stream, '', 1
                    UNION ALL
                    SELECT e.shard, e.workspace, e.stream, substr(e.stream, 1, instr(e.stream || '/', '/') - 1), 0
                      FROM n CROSS JOIN holdfast_{1} AS e
                     WHERE (e.shard, e.id, e.n) = (
                           SELECT x.shard, x.id, x.n
                             FROM holdfast_{1} AS x
                            WHERE (x.shard, x.workspace, x.stream) > (n.shard, +n.workspace, iif(n.given OR n.prefix {2}, n.stream, n.prefix || '0')) -- + lets it bound the index; '0' follows '/'
                            ORDER BY x.shard, x.workspace, x.stream
                            LIMIT 1)
                )
                SELECT n.shard, n.workspace, n.stream, n.prefix, substr(n.stream, length(n.prefix) + 2) AS rest
                  FROM n
                 WHERE NOT n.given AND n.prefix {2}
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
