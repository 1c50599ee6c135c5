-- Creates a batch with its first items, unless it exists or its wallet does not.
-- :items a JSON list of [key, cost, input]; :about a JSON object for a bulk, else NULL
WITH {members}, {include store/time}, paid AS (
    SELECT m.member
      FROM m CROSS JOIN LATERAL (
           SELECT 1 FROM {schema}.wallet w WHERE w.shard = m.shard AND w.workspace = m.workspace AND w.id = m.wallet LIMIT 1) AS w
), made AS (
    INSERT INTO {schema}.batch
        (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested,
         items, next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version,
         due_at, served_at, created_at, updated_at, about, keep)
    SELECT m.shard, m.workspace, m.batch, m.wallet, m.handler, 'PENDING', m.parallel, m.attempts, m.allowed, m.timeout, m.undo = 1, m.artifacts = 1,
           m.sealed = 1, false, pg_catalog.json_array_length(m.items::json), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
           CASE WHEN m.sealed = 1 AND pg_catalog.json_array_length(m.items::json) = 0 THEN t.now END, t.now, t.now, t.now, m.about::json, nullif(m.keep, 0)
      FROM t, m JOIN paid ON paid.member = m.member
    ON CONFLICT (shard, workspace, id) DO NOTHING
    RETURNING shard, workspace, id, items, created_at
), added AS (
    INSERT INTO {schema}.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
    SELECT made.shard, made.workspace, made.id, x.item ->> 0, x.n, (x.item ->> 1)::bigint, 0, 'pending', x.item -> 2, 0, 0, 0, 0, false, made.created_at
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.batch
     CROSS JOIN LATERAL pg_catalog.json_array_elements(m.items::json) WITH ORDINALITY AS x(item, n)
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, 0, 'created', pg_catalog.json_build_object('items', made.items), made.created_at
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.batch
    {due_notices}
SELECT m.member,
       CASE WHEN made.id IS NOT NULL THEN 1 WHEN paid.member IS NULL OR b.id IS NOT NULL THEN 0 ELSE 2 END,
       CASE WHEN made.id IS NOT NULL THEN 'made' WHEN b.id IS NOT NULL THEN 'there' ELSE 'missing' END
  FROM m LEFT JOIN paid ON paid.member = m.member
  LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.batch
  LEFT JOIN LATERAL (SELECT b.id FROM {schema}.batch b WHERE b.shard = m.shard AND b.workspace = m.workspace AND b.id = m.batch LIMIT 1) AS b ON true
