-- Begins requests: one that is unknown; one that has expired; or the same request again, if
-- the lease of its crashed holder has expired. Existing rows are locked first, and the time
-- is read afterwards. A row is inserted only under an advisory lock on its key, which another
-- transaction has while it begins the same request; a member that then has neither its own
-- row nor the other's is retried.
-- The epochs of a new row begin at the current time: a row that was deleted and created
-- again never has the epoch of an earlier holder.
-- :ttl the retention in ms
WITH {members}, cur AS (
    SELECT r.shard, r.workspace, r.key, r.fingerprint, r.state, r.holder, r.epoch, r.until, r.operation, r.subject, r.status, r.answer,
           r.created_at, r.expires_at
      {include idempotency/lock}
), moved AS (
    UPDATE {schema}.request r
       SET fingerprint = m.fingerprint, state = 'held', holder = m.holder, epoch = cur.epoch + 1,
           until = {now} + m.lease::float8 * interval '1 ms', operation = NULL, subject = NULL, status = NULL, answer = NULL,
           created_at = CASE WHEN cur.expires_at <= {now} THEN {now} ELSE cur.created_at END,
           expires_at = {now} + m.ttl::float8 * interval '1 ms'
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key
       AND (cur.state <> 'held' OR cur.until <= {now})
       AND (cur.expires_at <= {now} OR cur.state = 'held' AND cur.fingerprint = m.fingerprint)
       AND r.epoch = cur.epoch
    RETURNING m.member, r.epoch, r.until, r.created_at
), gone AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.key, m.fingerprint, m.holder, m.lease, m.ttl
      FROM m
     WHERE CASE WHEN EXISTS (SELECT 1 FROM cur WHERE cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key)
                THEN false
                ELSE pg_catalog.pg_advisory_xact_lock({include idempotency/key_lock})::text IS NOT NULL END
), made AS (
    INSERT INTO {schema}.request (shard, workspace, key, fingerprint, state, holder, epoch, until, created_at, expires_at)
    SELECT gone.shard, gone.workspace, gone.key, gone.fingerprint, 'held', gone.holder, pg_catalog.floor(extract(epoch FROM {now}) * 1000000::numeric)::bigint,
           {now} + gone.lease::float8 * interval '1 ms', {now}, {now} + gone.ttl::float8 * interval '1 ms'
      FROM gone
     ORDER BY gone.shard, gone.workspace, gone.key
    ON CONFLICT (shard, workspace, key) DO NOTHING
    RETURNING shard, workspace, key, epoch, until, created_at
), taken AS (
    SELECT moved.member, moved.epoch, moved.until, moved.created_at FROM moved
    UNION ALL
    SELECT m.member, made.epoch, made.until, made.created_at
      FROM made JOIN m ON m.shard = made.shard AND m.workspace = made.workspace AND m.key = made.key
)
SELECT m.member,
       CASE WHEN taken.member IS NOT NULL THEN 1 WHEN cur.key IS NOT NULL THEN 0 ELSE 2 END,
       CASE WHEN taken.member IS NOT NULL THEN m.fingerprint ELSE coalesce(cur.fingerprint, '') END,
       CASE WHEN taken.member IS NOT NULL THEN 'held' ELSE coalesce(cur.state, '') END,
       CASE WHEN taken.member IS NOT NULL THEN m.holder ELSE coalesce(cur.holder, '') END,
       coalesce(taken.epoch, cur.epoch, 0),
       coalesce(taken.until, cur.until, 'epoch'),
       CASE WHEN taken.member IS NOT NULL THEN '' ELSE coalesce(cur.operation, '') END,
       CASE WHEN taken.member IS NOT NULL THEN '' ELSE coalesce(cur.subject, '') END,
       CASE WHEN taken.member IS NOT NULL THEN 0 ELSE coalesce(cur.status, 0) END,
       CASE WHEN taken.member IS NOT NULL THEN '' ELSE coalesce(cur.answer, '') END,
       coalesce(taken.created_at, cur.created_at, 'epoch'),
       greatest(0, pg_catalog.ceil(extract(epoch FROM coalesce(taken.until, cur.until, 'epoch') - {now}) * 1000::numeric))::bigint
  FROM m LEFT JOIN taken ON taken.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key
