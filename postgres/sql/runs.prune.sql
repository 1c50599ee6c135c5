-- Deletes runs whose time is over, with all that belongs to them but their history, which
-- goes by its own rule.
-- $4 limit
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, room, member)
), gone AS MATERIALIZED (
    SELECT r.shard, r.workspace, r.id
      FROM {schema}.run r
     WHERE r.shard = (SELECT m.shard FROM m) AND r.prune_at <= {now}
     ORDER BY r.prune_at
     LIMIT (SELECT m.room FROM m)
       FOR UPDATE SKIP LOCKED
), effects AS (
    DELETE FROM {schema}.effect x
     USING gone JOIN {schema}.step s ON s.shard = gone.shard AND s.workspace = gone.workspace AND s.run = gone.id
     WHERE x.shard = s.shard AND x.workspace = s.workspace AND x.operation = s.run || '/' || s.name || '/' || s.visit
), steps AS (
    DELETE FROM {schema}.step s USING gone WHERE s.shard = gone.shard AND s.workspace = gone.workspace AND s.run = gone.id
), signals AS (
    DELETE FROM {schema}.signal g USING gone WHERE g.shard = gone.shard AND g.workspace = gone.workspace AND g.run = gone.id
), approvals AS (
    DELETE FROM {schema}.approval a USING gone WHERE a.shard = gone.shard AND a.workspace = gone.workspace AND a.run = gone.id
), runs AS (
    DELETE FROM {schema}.run r USING gone WHERE r.shard = gone.shard AND r.workspace = gone.workspace AND r.id = gone.id
)
SELECT m.member, 1, (SELECT count(*) FROM gone)
  FROM m
