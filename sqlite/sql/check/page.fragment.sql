-- A page of rows, {4}, of which those are answered that are {3}, and the last; {1} is what is answered of a row, {2} the end of
-- its key.
SELECT j.nth, j.bad, j.shard, j.workspace, {1}
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, {2}) AS nth, count(*) OVER () AS size,
               {3} AS bad, c.*
          FROM ({4}
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
