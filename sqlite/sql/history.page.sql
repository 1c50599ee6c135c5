-- Where a page of the history ends, and how long it is.
-- ?1 shard, ?2 workspace, not looked at: all are read in order, ?3 after, ?4 up to,
-- both ids as text, ?5 limit
-- do
SELECT count(*), coalesce(lower(hex(max(p.id))), '')
  FROM (SELECT o.id FROM holdfast_history AS o
         WHERE o.shard = ?1 AND o.id > unhex(?3, '-') AND o.id < unhex(?4, '-') AND ?2 IS NOT NULL
         ORDER BY o.id
         LIMIT +?5) AS p
