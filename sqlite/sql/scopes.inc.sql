-- Adds to a whole number in a scope's state, and makes what is missing. A field
-- that is no whole number of 64 bits, or would not be one afterwards, is left
-- as it is. The field's name may be any text, so it never becomes part of a
-- JSON path: json_each finds it and json_patch sets it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 field, ?7 by,
-- ?8 correlation, ?9 causation, ?10 actor
-- do
INSERT INTO holdfast_scope AS s
    (shard, workspace, kind, id, version, state, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, 0, json_object(?6, ?7), t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, kind, id) DO UPDATE
   SET version = s.version + 1, updated_at = excluded.updated_at,
       state = json_patch(coalesce(s.state, '{}'), json_object(?6, ?7 + coalesce(
           (SELECT f.value FROM json_each(coalesce(s.state, '{}')) AS f WHERE f.key = ?6), 0)))
 WHERE NOT EXISTS (
           SELECT 1 FROM json_each(coalesce(s.state, '{}')) AS f
            WHERE f.key = ?6
              AND (f.type <> 'integer' OR typeof(f.value) <> 'integer' OR typeof(f.value + ?7) <> 'integer'))
RETURNING version, state, (SELECT f.value FROM json_each(state) AS f WHERE f.key = ?6)
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, s.version, 'inc',
       json_object('field', ?6, 'by', ?7, 'value',
           (SELECT f.value FROM json_each(s.state) AS f WHERE f.key = ?6)), ?8, ?9, ?10, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
-- else
SELECT s.version, s.state, 0
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
