-- Notes beside a row in a table of the user's own the status that it has, unless
-- somebody has it in a claim, and answers what is noted there now.
-- $4 lifecycle, $5 entity, $6 status
-- $7 revision, $8 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, status, revision, marks, member)
     WHERE {known}
), moved AS (
    INSERT INTO {schema}.entity AS e (shard, workspace, lifecycle, id, status, version, data, side, created_at, updated_at)
    SELECT m.shard, m.workspace, m.lifecycle, m.entity, m.status, 0, '{}', true, {now}, {now}
      FROM m
     ORDER BY m.shard, m.workspace, m.lifecycle, m.entity
    ON CONFLICT (shard, workspace, lifecycle, id) DO UPDATE
       SET status = CASE WHEN e.phase = 'free' THEN excluded.status ELSE e.status END,
           version = e.version + CASE WHEN e.phase = 'free' AND e.status <> excluded.status THEN 1 ELSE 0 END,
           updated_at = CASE WHEN e.phase = 'free' AND e.status <> excluded.status THEN excluded.updated_at ELSE e.updated_at END
    RETURNING e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at, e.updated_at, e.phase,
              e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun,
              e.failures, e.deaths, e.error, e.outcome, e.manual
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$entity/' || m.lifecycle || '/' || m.entity, moved.version, 'seen',
           json_build_object('to', moved.status), NULL, NULL, NULL, moved.updated_at
      FROM m JOIN moved ON moved.shard = m.shard AND moved.workspace = m.workspace AND moved.lifecycle = m.lifecycle AND moved.id = m.entity
     WHERE NOT EXISTS (SELECT 1 FROM {schema}.history h WHERE h.shard = m.shard AND h.workspace = m.workspace
                          AND h.stream = '$entity/' || m.lifecycle || '/' || m.entity AND h.version = moved.version)
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member, 1, coalesce(moved.status, ''), coalesce(moved.version, -1), coalesce(moved.data, 'null')::text,
       coalesce(moved.created_at, 'epoch'), coalesce(moved.updated_at, 'epoch'), coalesce(moved.phase, 'free'),
       coalesce(moved.operation, ''), coalesce(moved.step, ''), coalesce(moved.requester, ''),
       coalesce(moved.revert, ''), coalesce(moved.input::text, ''), coalesce(moved.holder, ''),
       coalesce(moved.epoch, 0), coalesce(moved.until, 'epoch'), coalesce(moved.claimed_at, 'epoch'),
       coalesce(moved.begun, 0), coalesce(moved.failures, 0), coalesce(moved.deaths, 0), coalesce(moved.error, ''),
       coalesce(moved.outcome, ''), coalesce(moved.manual, false)
  FROM m JOIN moved ON moved.shard = m.shard AND moved.workspace = m.workspace AND moved.lifecycle = m.lifecycle AND moved.id = m.entity
