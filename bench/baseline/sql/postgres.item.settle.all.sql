-- Ends items of a batch that are held, with their output.
-- $1 shard, $2 workspace, $4 batch, $7 output; an item: $3 id of the event, $5 key,
-- $6 epoch
WITH m AS (
    SELECT * FROM unnest($3::uuid[], $5::text[], $6::bigint[]) WITH ORDINALITY AS m(event, key, epoch, member)
), t AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), ended AS (
    UPDATE {schema}.item i
       SET state = 'succeeded', output = $7::text::json, holder = NULL, until = NULL, updated_at = t.now
      FROM t, m
     WHERE i.shard = $1::smallint AND i.workspace = $2::text AND i.batch = $4::text AND i.key = m.key
       AND i.state = 'running' AND i.epoch = m.epoch AND i.until > t.now
    RETURNING m.member, m.event, i.key, i.state, i.failures, i.deaths
), sums AS MATERIALIZED (
    SELECT count(*) AS ended FROM ended
), moved AS (
    UPDATE {schema}.batch c
       SET running = c.running - sums.ended, succeeded = c.succeeded + sums.ended, version = c.version + sums.ended, updated_at = t.now
      FROM t, sums
     WHERE c.shard = $1 AND c.workspace = $2 AND c.id = $4 AND sums.ended > 0
    RETURNING c.version - sums.ended AS before, c.items - c.next + c.waiting AS pending, c.running, c.succeeded, c.failed, c.cancelled, c.accepted
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, ended.event, 0, $2, '$batch/' || $4, moved.before + row_number() OVER (ORDER BY ended.member), 'itemSucceeded',
           json_build_object('key', ended.key, 'state', ended.state, 'failures', ended.failures, 'deaths', ended.deaths, 'over', false,
                             'counts', json_build_object('pending', moved.pending, 'running', moved.running, 'succeeded', moved.succeeded,
                                                         'failed', moved.failed, 'cancelled', moved.cancelled, 'accepted', moved.accepted)),
           t.now
      FROM t, moved, ended
)
SELECT ended FROM sums
