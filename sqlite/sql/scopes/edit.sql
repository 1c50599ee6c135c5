-- Edits a scope, and creates a missing one. A field name may be any text: quoted as JSON it
-- is a step of a path. A null field counts as missing, and an edit that makes a state
-- smaller is never refused.
-- The outcome: 0 refused, 1 changed, 2 changed nothing, 3 not at the expected version.
-- A patch keeps the order of existing fields, and list entries have one canonical order, so
-- another text is another state. Only a record that is set as a whole may have the same
-- length and the same content in another order. SQLite rounds numbers of more than 15 digits:
-- these are compared by their text. w are the texts of the numbers of both records in turn,
-- cut out of the rest after the strings are removed; k are the positions of those numbers.
-- (The operator -> would search the whole record for each number.)
-- The scope has expired if born is negative: only the event that begins a new state needs that, then born is restored.
-- do
INSERT INTO holdfast_scope AS s
    (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at, born)
  WITH n AS MATERIALIZED (
       SELECT b.now, b.version, b.alive, b.old, b.old -> (b.path || '.' || json_quote(:key)) AS record,
              {include scopes/edited_state}
         FROM (SELECT a.*, nullif(json_type(a.old, a.path), 'null') AS type
                 FROM (SELECT t.now, x.version, x.state IS NOT NULL AS alive, coalesce(x.state, '{}') AS old, '$.' || json_quote(:field) AS path
                         FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS x
                           ON x.shard = :shard AND x.workspace = :workspace AND x.kind = :kind AND x.id = :scope
                          AND x.state IS NOT NULL AND (x.expires_at IS NULL OR x.expires_at > t.now)) AS a) AS b),
       f AS MATERIALIZED (
       SELECT {include scopes/floor} AS version)
SELECT :shard, :workspace, :kind, :scope, f.version, n.state, n.now, n.now, n.now + :ttl, f.version
  FROM n CROSS JOIN f
 WHERE (:want IS NULL OR :want = CASE WHEN n.alive THEN n.version ELSE -1 END OR (:want = -2 AND n.alive))
   AND n.state IS NOT NULL AND (octet_length(n.state) <= 1048576 OR octet_length(n.state) < octet_length(n.old))
   AND CASE WHEN n.alive OR :op = 'unset' THEN n.state <> n.old ELSE true END
   AND (:op <> 'set' OR NOT n.alive OR n.record IS NULL OR octet_length(n.record) <> octet_length(:value)
        OR EXISTS (SELECT j.fullkey, j.type, j.atom FROM json_tree(:value) AS j
                   EXCEPT SELECT j.fullkey, j.type, j.atom FROM json_tree(n.record) AS j)
        OR (:value GLOB '*' || replace('xxxxxxxxxxxxxxxx', 'x', '[.0-9]') || '*' AND
            EXISTS (WITH d AS MATERIALIZED (SELECT '[' || n.record || ',' || :value || ']' AS both FROM n),
                         r AS MATERIALIZED (
                         SELECT string_agg(p.value, '' ORDER BY p.key) AS rest
                           FROM d CROSS JOIN json_each('["' || replace(replace(replace(replace(d.both, '\\', ''), '\"', ''), '\', ''), '"', '","') || '"]') AS p
                          WHERE p.key % 2 = 0),
                         w AS MATERIALIZED (
                         SELECT q.key AS nth, q.value AS text
                           FROM json_each((SELECT json_group_array(p.value ORDER BY p.key)
                                             FROM r CROSS JOIN json_each('["' || replace(replace(replace(replace(replace(replace(
                                                  r.rest, '{', ','), '}', ','), '[', ','), ']', ','), ':', ','), ',', '","') || '"]') AS p
                                            WHERE p.value GLOB '[-0-9]*')) AS q
                          WHERE length(q.value) > 15),
                         k AS MATERIALIZED (
                         SELECT q.key AS nth, substr(q.value, length('$[0]') + 1) AS place
                           FROM json_each((SELECT json_group_array(j.fullkey ORDER BY j.id) FROM d CROSS JOIN json_tree(d.both) AS j
                                            WHERE j.type IN ('integer', 'real'))) AS q)
                    SELECT 1 FROM k JOIN w ON w.nth = k.nth GROUP BY k.place, w.text HAVING count(*) < 2)))
ON CONFLICT (shard, workspace, kind, id) DO UPDATE
   SET version = s.version + 1, state = excluded.state, updated_at = excluded.updated_at, expires_at = excluded.expires_at,
       born = CASE WHEN s.state IS NOT NULL AND s.expires_at <= excluded.updated_at THEN -1 - s.born ELSE s.born END
RETURNING version, state, 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, s.version, :op,
       '{' || CASE WHEN s.born < 0 OR (s.born = s.version AND s.born > 0) THEN '"created":true,' ELSE '' END ||
       CASE :op WHEN 'patch' THEN '"patch":' || :value || '}'
               WHEN 'inc' THEN substr(json_object('field', :field, 'by', CAST(:value AS INTEGER), 'value', s.state ->> ('$.' || json_quote(:field))), 2)
               WHEN 'push' THEN '"field":' || json_quote(:field) || ',"value":' || :value || '}'
               WHEN 'set' THEN '"field":' || json_quote(:field) || ',"key":' || json_quote(:key) || ',"value":' || :value || '}'
               ELSE substr(json_object('field', :field, 'key', :key), 2) END, :correlation, :causation, :actor, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
-- also
UPDATE holdfast_scope AS s
   SET born = -1 - s.born
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope AND s.born < 0
-- else
SELECT CASE WHEN n.alive THEN n.version ELSE -1 END, CASE WHEN n.alive THEN n.old ELSE 'null' END,
       CASE WHEN NOT (:want IS NULL OR :want = CASE WHEN n.alive THEN n.version ELSE -1 END OR (:want = -2 AND n.alive)) THEN 3
            WHEN n.state IS NULL OR (octet_length(n.state) > 1048576 AND n.state <> n.old) THEN 0
            ELSE 2 END
  FROM (SELECT b.version, b.alive, b.old,
              {include scopes/edited_state}
         FROM (SELECT a.*, nullif(json_type(a.old, a.path), 'null') AS type
                 FROM (SELECT t.now, x.version, x.state IS NOT NULL AS alive, coalesce(x.state, '{}') AS old, '$.' || json_quote(:field) AS path
                         FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS x
                           ON x.shard = :shard AND x.workspace = :workspace AND x.kind = :kind AND x.id = :scope
                          AND x.state IS NOT NULL AND (x.expires_at IS NULL OR x.expires_at > t.now)) AS a) AS b) AS n
