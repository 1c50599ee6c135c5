-- Locks a stream until the transaction ends, and returns its state: nothing is appended
-- from then on, and the following statements see everything appended before.
WITH cur AS MATERIALIZED (
    SELECT s.first, s.head, s.state, s.closed, s.holder, s.epoch, s.until
      {include streams/lock}
)
SELECT cur.first, cur.head, cur.state, coalesce(cur.closed, ''), coalesce(cur.holder, ''), cur.epoch,
       coalesce(cur.until, 'epoch'), coalesce(cur.until > {now}, false) -- read after the lock
  FROM cur
