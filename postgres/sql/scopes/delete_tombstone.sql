-- Deletes expired tombstones, and raises the version floor of their kind above them, so that
-- their versions are not reused.
WITH {members}, cur AS (
    SELECT s.shard, s.workspace, s.kind, s.id, s.version, s.state, s.expires_at
      {include scopes/lock}
), old AS MATERIALIZED (
    SELECT cur.shard, cur.workspace, cur.kind, cur.id, cur.version FROM cur WHERE cur.state IS NULL AND cur.expires_at <= {now}
), gone AS (
    DELETE FROM {schema}.scope s USING old
     WHERE s.shard = ANY (ARRAY[old.shard]) AND s.workspace = old.workspace AND s.kind = old.kind AND s.id = old.id
), raised AS (
    INSERT INTO {schema}.scope_floor AS f (shard, workspace, kind, version)
    SELECT old.shard, old.workspace, old.kind, pg_catalog.max(old.version) + 1 FROM old
     GROUP BY old.shard, old.workspace, old.kind
     ORDER BY old.shard, old.workspace, old.kind
    ON CONFLICT (shard, workspace, kind) DO UPDATE SET version = greatest(f.version, excluded.version)
)
SELECT m.member,
       CASE WHEN old.id IS NOT NULL THEN 1
            WHEN cur.id IS NULL AND (SELECT true FROM {schema}.scope s WHERE s.shard = m.shard AND s.workspace = m.workspace
                                                                            AND s.kind = m.kind AND s.id = m.scope LIMIT 1) IS NOT NULL THEN 2
            ELSE 0 END,
       coalesce(old.version, -1)
  FROM m LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.kind = m.kind AND cur.id = m.scope
  LEFT JOIN old ON old.shard = m.shard AND old.workspace = m.workspace AND old.kind = m.kind AND old.id = m.scope
