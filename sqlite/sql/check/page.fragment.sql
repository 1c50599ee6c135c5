-- Returns, of one page of rows {4}, those that match {3}, and the last row; {1} are the columns returned, {2} is the end of
-- the key.
SELECT j.nth, j.bad, j.shard, j.workspace, {1}
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, {2}) AS nth, count(*) OVER () AS size,
               {3} AS bad, c.*
          FROM ({4}
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
