-- Locks a stream until the transaction ends, and tells where it stands: from
-- then on nothing is appended to it, and what was is there to be seen by the
-- statements that follow.
-- $1 shard, $2 workspace, $3 stream
WITH cur AS MATERIALIZED (
    SELECT s.first, s.head, s.state, s.closed, s.holder, s.epoch, s.until
      FROM {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
       FOR UPDATE
)
SELECT cur.first, cur.head, cur.state, coalesce(cur.closed, ''), coalesce(cur.holder, ''), cur.epoch,
       coalesce(cur.until, 'epoch'), coalesce(cur.until > {now}, false) -- after the lock
  FROM cur
