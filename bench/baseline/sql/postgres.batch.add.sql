-- Adds a page of items.
-- $1 shard, $2 workspace, $3 id of the event, $4 batch; an item: $5 key, $6 cost,
-- $7 input
WITH moved AS (
    UPDATE {schema}.batch
       SET items = items + cardinality($5::text[]), version = version + 1, updated_at = clock_timestamp()
     WHERE shard = $1::smallint AND workspace = $2::text AND id = $4::text AND NOT sealed AND NOT cancel_requested
    RETURNING items, version, updated_at
), added AS (
    INSERT INTO {schema}.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
    SELECT $1, $2, $4, x.key, moved.items - cardinality($5) + x.n, x.cost, 0, 'pending', x.input::json, 0, 0, 0, 0, false, moved.updated_at
      FROM moved, unnest($5, $6::bigint[], $7::text[]) WITH ORDINALITY AS x(key, cost, input, n)
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$batch/' || $4, version, 'itemsAdded',
           json_build_object('added', cardinality($5), 'items', items), updated_at
      FROM moved
)
SELECT items FROM moved
