-- Begins a request: one that is unknown; one that has expired; or the same request again, if
-- the lease of its crashed holder has expired.
-- The epochs of a new row begin at the current time, with a random part because many rows
-- may be created in a millisecond: a row that was deleted and created again never has the
-- epoch of an earlier holder.
-- do
INSERT INTO holdfast_request AS r
    (shard, workspace, key, fingerprint, state, holder, epoch, until, created_at, expires_at)
SELECT :shard, :workspace, :key, :fingerprint, 'held', :holder, t.now * 1000000 + abs(random() % 500000), t.now + :lease, t.now, t.now + :ttl
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, key) DO UPDATE
   SET fingerprint = excluded.fingerprint, state = 'held', holder = excluded.holder, epoch = r.epoch + 1,
       until = excluded.until, operation = NULL, subject = NULL, status = NULL, answer = NULL,
       created_at = CASE WHEN r.expires_at <= excluded.created_at THEN excluded.created_at ELSE r.created_at END,
       expires_at = excluded.expires_at
 WHERE (r.state <> 'held' OR r.until <= excluded.created_at)
   AND (r.expires_at <= excluded.created_at OR r.state = 'held' AND r.fingerprint = excluded.fingerprint)
RETURNING fingerprint, state, holder, epoch, until, '', '', 0, '', created_at, max(0, until - {now})
-- else
SELECT r.fingerprint, r.state, coalesce(r.holder, ''), r.epoch, coalesce(r.until, 0), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, ''), r.created_at, max(0, coalesce(r.until, 0) - {now})
  FROM holdfast_request AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
