-- Stores requests with their responses. It follows the work of the requests, whose rows are locked,
-- in the transaction of idempotency.probe: its advisory locks keep others from inserting the same
-- keys, so it does not wait. It is sent together with the COMMIT, so that a key that was stored
-- after all, between the snapshot of the probe and the probe's lock, must be an error.
-- :ttl the retention in ms
WITH {members}, made AS (
    INSERT INTO {schema}.request (shard, workspace, key, fingerprint, state, epoch, status, answer, created_at, expires_at)
    SELECT m.shard, m.workspace, m.key, m.fingerprint, 'done', pg_catalog.floor(extract(epoch FROM {now}) * 1000000::numeric)::bigint,
           m.status, m.answer, {now}, {now} + m.ttl::float8 * interval '1 ms'
      FROM m
)
SELECT m.member, 1, 0 FROM m
