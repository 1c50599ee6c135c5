-- Returns the end of a page of the history, and its length.
SELECT count(*), coalesce(lower(hex(max(p.id))), '')
  FROM (SELECT o.id FROM holdfast_history AS o
         WHERE o.shard = :shard AND o.id > unhex(:after, '-') AND o.id < unhex(:upto, '-') AND :workspace IS NOT NULL
         ORDER BY o.id
         LIMIT :limit) AS p
