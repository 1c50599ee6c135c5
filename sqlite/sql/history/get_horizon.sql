-- Returns the time of the newest event of a workspace's histories, among those after an id, and the events of this time.
SELECT '', coalesce(max(q.at), 0), json_group_object(q.id, q.n)
  FROM (SELECT substr(lower(hex(h.id)), 23) AS id, max(h.n) AS n, h.at
          FROM holdfast_history AS h
         WHERE h.shard = :shard AND h.workspace = :workspace AND h.id > unhex(:after, '-')
           AND h.at = (SELECT max(l.at) FROM holdfast_history AS l WHERE l.shard = :shard AND l.workspace = :workspace AND l.id > unhex(:after, '-'))
         GROUP BY h.id) AS q
