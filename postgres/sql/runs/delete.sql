-- Deletes a run past its retention, with everything that belongs to it except its history,
-- which has its own retention. A key is kept: its row stays, with another id and without data, so that no
-- second run can be started with it. A statement that waited for the run does not see what was
-- added to it meanwhile: the version differs, and the run is left for the next time.
-- :expired the id that a kept row gets; :keep how long it is kept, in ms, 0 for ever
WITH {members few}, cur AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.run, m.expired, m.keep, r.prune_at, r.version, r.key IS NOT NULL AND m.run <> m.expired AS keyed
      FROM m CROSS JOIN LATERAL (
           SELECT r.prune_at, r.version, r.key FROM {schema}.run r
            WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.id = m.run
              FOR UPDATE) AS r
), gone AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.run, cur.expired, cur.keep, cur.keyed FROM cur
     WHERE cur.prune_at <= {now}
       AND cur.version = (SELECT r.version FROM {schema}.run r WHERE r.shard = cur.shard AND r.workspace = cur.workspace AND r.id = cur.run)
), effects AS (
    DELETE FROM {schema}.effect x USING gone
     WHERE x.shard = ANY (ARRAY[gone.shard]) AND x.workspace = gone.workspace AND x.operation >= gone.run || '/' AND x.operation < gone.run || '0'
), steps AS (
    DELETE FROM {schema}.step s USING gone WHERE s.shard = ANY (ARRAY[gone.shard]) AND s.workspace = gone.workspace AND s.run = gone.run
), signals AS (
    DELETE FROM {schema}.signal g USING gone WHERE g.shard = ANY (ARRAY[gone.shard]) AND g.workspace = gone.workspace AND g.run = gone.run
), approvals AS (
    DELETE FROM {schema}.approval a USING gone WHERE a.shard = ANY (ARRAY[gone.shard]) AND a.workspace = gone.workspace AND a.run = gone.run
), keys AS (
    UPDATE {schema}.run r
       SET id = gone.expired, status = 'COMPLETED', input = 'null', state = 'null', memo = 'null', output = NULL, error = NULL, step = '', visit = 1,
           prune_at = CASE WHEN gone.keep > 0 THEN {now} + gone.keep::float8 * interval '1 ms' END, updated_at = {now}
      FROM gone WHERE gone.keyed AND r.shard = ANY (ARRAY[gone.shard]) AND r.workspace = gone.workspace AND r.id = gone.run
), runs AS (
    DELETE FROM {schema}.run r USING gone WHERE NOT gone.keyed AND r.shard = ANY (ARRAY[gone.shard]) AND r.workspace = gone.workspace AND r.id = gone.run
)
{include store/select_applied gone}
