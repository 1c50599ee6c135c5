-- Has a batch that was looked at looked at again after a while, or, with a negative
-- delay, only when something happens to it. What happened meanwhile is not overlooked:
-- the version tells, and a batch that might be at its end stays due.
-- $4 batch, $5 version, $6 delay in ms, $7 error
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
             WITH ORDINALITY AS m(shard, workspace, command, batch, version, delay, error, member)
), moved AS (
    UPDATE {schema}.batch b
       SET due_at = CASE WHEN m.delay >= 0 THEN {now} + m.delay::float8 * interval '1 ms' END, error = coalesce(m.error, b.error)
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch AND b.version = m.version
       AND (m.delay >= 0 OR CASE WHEN b.cancel_requested THEN b.dirty > 0 AND b.waiting = 0 AND b.running = 0 AND b.succeeded = b.accepted
                                 ELSE NOT b.sealed OR b.next < b.items OR b.waiting > 0 OR b.running > 0 OR b.dirty > 0 END)
    RETURNING m.member
)
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN moved ON moved.member = m.member
