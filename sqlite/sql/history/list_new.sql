-- Reads the events of a workspace's histories that an earlier read has not returned. There is one writer, which takes its
-- time while it has the lock, so events are committed in the order of their times: an event was returned if its time is
-- before :far_next, or equal and its id is in :far_read; the same for :near, if its id is greater than :from. Ids are
-- shortened to their last 10 digits, and have the last n that was returned.
-- unused: far_open, near_open, upto_next, upto_open
SELECT '', q.now, coalesce(p.at, 0), coalesce(lower(hex(p.id)), ''), coalesce(p.n, 0), coalesce(p.stream, ''), coalesce(p.version, -1),
       coalesce(p.name, ''), coalesce(p.data, ''), coalesce(p.correlation, ''), coalesce(p.causation, ''), coalesce(p.actor, ''), coalesce(p.at, 0)
  FROM (SELECT {now} AS now) AS q
  LEFT JOIN (
       SELECT h.id, h.n, h.stream, h.version, h.name, CASE WHEN octet_length(h.data) <= :bytes THEN h.data END AS data, h.correlation, h.causation, h.actor, h.at
         FROM holdfast_history AS h
        WHERE h.shard = :shard AND h.workspace = :workspace AND (h.id, h.n) > (unhex(:after, '-'), :n)
          AND h.at >= :far_next AND (h.at >= :near_next OR h.id <= unhex(:from, '-')) -- first: most rows that are read are not new
          AND substr(h.stream, 1, 6) NOT IN ('$void/', '$mark/')
          AND substr(h.stream, 1, 5) <> '$key/'
          AND (h.at > :far_next
               OR h.at = :far_next AND h.n > coalesce((SELECT e.value FROM json_each(:far_read) AS e WHERE e.key = substr(lower(hex(h.id)), 23)), -1))
          AND (h.id <= unhex(:from, '-') OR h.at > :near_next
               OR h.at = :near_next AND h.n > coalesce((SELECT e.value FROM json_each(:near_read) AS e WHERE e.key = substr(lower(hex(h.id)), 23)), -1))
        ORDER BY h.at, h.id, h.n
        LIMIT :limit) AS p ON true
 ORDER BY p.at, p.id, p.n
