-- $1 shard, $2 workspace, $3 id of the event, $4 batch, $5 wallet, $6 handler, $7 parallel
WITH made AS (
    INSERT INTO {schema}.batch
        (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested,
         items, next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version,
         served_at, created_at, updated_at)
    SELECT $1::smallint, $2::text, $4::text, $5::text, $6::text, 'PENDING', $7::bigint, 3, 5, 900000, false, false, false, false,
           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t.now, t.now, t.now
      FROM (SELECT clock_timestamp() AS now) AS t
    ON CONFLICT (shard, workspace, id) DO NOTHING
    RETURNING version, created_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$batch/' || $4, version, 'created', '{"items": 0}', created_at
      FROM made
)
SELECT version FROM made
