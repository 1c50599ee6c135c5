-- Locks a stream until the transaction ends, and tells where it stands: from
-- then on nothing is appended to it, and what was is there to be seen by the
-- statements that follow.
WITH cur AS MATERIALIZED (
    SELECT s.first, s.head, s.state, s.closed, s.holder, s.epoch, s.until
      {include books/lock}
)
SELECT cur.first, cur.head, cur.state, coalesce(cur.closed, ''), coalesce(cur.holder, ''), cur.epoch,
       coalesce(cur.until, 'epoch'), coalesce(cur.until > {now}, false) -- after the lock
  FROM cur
