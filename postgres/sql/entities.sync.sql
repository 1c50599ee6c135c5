-- Notes beside a row in a table of the user's own the status that it has, unless
-- somebody has it in a claim, and answers what is noted there now; nothing where
-- another has just made the row beside it: then one asks again. The row is locked
-- first, and what the lock returned decides.
-- $4 lifecycle, $5 entity, $6 status
-- $7 revision, $8 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, status, revision, marks, member)
     WHERE {known}
), cur AS MATERIALIZED (
    SELECT m.member, m.command, m.status AS seen, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version,
           e.data, e.created_at, e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input,
           e.holder, e.epoch, e.until, e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
       FOR UPDATE OF e
), made AS (
    INSERT INTO {schema}.entity AS e (shard, workspace, lifecycle, id, status, version, data, side, created_at, updated_at)
    SELECT m.shard, m.workspace, m.lifecycle, m.entity, m.status, 0, '{}', true, {now}, {now}
      FROM m
     WHERE m.member NOT IN (SELECT cur.member FROM cur)
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at, e.updated_at, e.phase,
              e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun,
              e.failures, e.deaths, e.error, e.outcome, e.manual
), moved AS (
    UPDATE {schema}.entity e
       SET status = cur.seen, version = cur.version + 1, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.phase = 'free' AND cur.status <> cur.seen
    RETURNING e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at, e.updated_at, e.phase,
              e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun,
              e.failures, e.deaths, e.error, e.outcome, e.manual
), fresh AS (
    SELECT made.* FROM made
    UNION ALL
    SELECT moved.* FROM moved
), told AS (
    SELECT 1 AS applied, fresh.shard, fresh.workspace, fresh.lifecycle, fresh.id, fresh.status, fresh.version, fresh.data, fresh.created_at,
           fresh.updated_at, fresh.phase, fresh.operation, fresh.step, fresh.requester, fresh.revert, fresh.input,
           fresh.holder, fresh.epoch, fresh.until, fresh.claimed_at, fresh.begun, fresh.failures, fresh.deaths,
           fresh.error, fresh.outcome, fresh.manual FROM fresh
    UNION ALL
    SELECT 0, cur.shard, cur.workspace, cur.lifecycle, cur.id, cur.status, cur.version, cur.data, cur.created_at, cur.updated_at,
           cur.phase, cur.operation, cur.step, cur.requester, cur.revert, cur.input, cur.holder, cur.epoch,
           cur.until, cur.claimed_at, cur.begun, cur.failures, cur.deaths, cur.error, cur.outcome, cur.manual FROM cur
     WHERE cur.phase <> 'free' OR cur.status = cur.seen
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$entity/' || m.lifecycle || '/' || m.entity, fresh.version, 'seen',
           pg_catalog.json_build_object('to', fresh.status), NULL, NULL, NULL, fresh.updated_at
      FROM m JOIN fresh ON fresh.shard = m.shard AND fresh.workspace = m.workspace AND fresh.lifecycle = m.lifecycle AND fresh.id = m.entity
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member, coalesce(told.applied, 0), coalesce(told.status, ''), coalesce(told.version, -1), coalesce(told.data, 'null')::text,
       coalesce(told.created_at, 'epoch'), coalesce(told.updated_at, 'epoch'), coalesce(told.phase, 'free'),
       coalesce(told.operation, ''), coalesce(told.step, ''), coalesce(told.requester, ''),
       coalesce(told.revert, ''), coalesce(told.input::text, ''), coalesce(told.holder, ''), coalesce(told.epoch, 0),
       coalesce(told.until, 'epoch'), coalesce(told.claimed_at, 'epoch'), coalesce(told.begun, 0),
       coalesce(told.failures, 0), coalesce(told.deaths, 0), coalesce(told.error, ''), coalesce(told.outcome, ''),
       coalesce(told.manual, false)
  FROM m LEFT JOIN told ON told.shard = m.shard AND told.workspace = m.workspace AND told.lifecycle = m.lifecycle AND told.id = m.entity
