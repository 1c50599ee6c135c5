-- Adds to an integer field of existing scopes, as scopes.edit does. Several members may share a
-- scope: their amounts are added up in order, and each has its own version and event. Members that
-- do not name the same field as the first of their scope, or whose field is not an integer of at most
-- 17 digits, are refused: scopes.edit serves them. 64 such numbers add up to less than 2^63.
WITH {members}, cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, s.state, s.expires_at
      FROM (SELECT DISTINCT m.shard, m.workspace, m.kind, m.scope FROM m) AS k JOIN {schema}.scope s
        ON s.shard = ANY (ARRAY[k.shard]) AND s.workspace = k.workspace AND s.kind = k.kind AND s.id = k.scope
     ORDER BY k.shard, s.workspace, s.kind, s.id
       FOR UPDATE OF s{skip}
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), fits AS (
    SELECT m.*, t.now, cur.version, cur.state, pg_catalog.first_value(m.field) OVER (PARTITION BY m.shard, m.workspace, m.kind, m.scope ORDER BY m.member) AS common
      FROM t, m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
     WHERE cur.state IS NOT NULL AND (cur.expires_at IS NULL OR cur.expires_at > t.now) AND pg_catalog.octet_length(cur.state::text) < 1048500
       AND CASE WHEN pg_catalog.jsonb_typeof(cur.state -> m.field) = 'number' THEN cur.state ->> m.field ~ '^-?[0-9]{1,17}$' END
), ok AS MATERIALIZED (
    SELECT fits.*, fits.version + pg_catalog.row_number() OVER added AS made,
           (fits.state ->> fits.field)::bigint + (pg_catalog.sum(fits.amount) OVER added)::bigint AS total,
           pg_catalog.lead(fits.member) OVER added IS NULL AS last
      FROM fits
     WHERE fits.field = fits.common
    WINDOW added AS (PARTITION BY fits.shard, fits.workspace, fits.kind, fits.scope ORDER BY fits.member)
), moved AS (
    UPDATE {schema}.scope s
       SET version = ok.made, state = ok.state || pg_catalog.jsonb_build_object(ok.field, ok.total), updated_at = ok.now, expires_at = ok.now + ok.ttl::float8 * interval '1 ms'
      FROM ok
     WHERE s.shard = ANY (ARRAY[ok.shard]) AND s.workspace = ok.workspace AND s.kind = ok.kind AND s.id = ok.scope AND ok.last
), {include history/write}
    SELECT ok.shard, ok.command, 0, ok.workspace, '$scope/' || ok.kind || '/' || ok.scope, ok.made, 'inc',
           {include scopes/increment_data ok.field; ok.amount; ok.total}, ok.correlation, ok.causation, ok.actor, ok.now
      FROM ok
    {due_notices}
SELECT m.member,
       CASE WHEN ok.member IS NOT NULL THEN 1
            WHEN NOT EXISTS (SELECT 1 FROM cur WHERE cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope)
             AND (SELECT true FROM {schema}.scope s WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope LIMIT 1) IS NOT NULL THEN 2
            ELSE 0 END,
       coalesce(ok.made, -1), CASE WHEN ok.member IS NOT NULL THEN ok.state || pg_catalog.jsonb_build_object(ok.field, ok.total) ELSE 'null' END::text, 1::bigint
  FROM m LEFT JOIN ok ON ok.member = m.member
