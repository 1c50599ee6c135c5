-- Edits a scope, and makes what is missing. A name may be any text: quoted as JSON it is a
-- step of a path. A field that is null is as one that is missing, and what makes a state
-- smaller is never refused.
-- The verdict: 0 refused, 1 changed, 2 changed nothing, 3 not at the expected version.
-- A patch leaves the members that are there in their order, and lists hold objects in their
-- one order, so another text is another state. Only a record that is set may be of the same
-- length and the same in another order. SQLite rounds numbers of more than 15 digits: they are
-- then compared as they are written. w is the texts of the numbers of both records in turn, cut
-- out of what is left without strings; k is where those numbers stand. (The operator -> for
-- each of them would look through the whole record for each.)
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 op (inc, patch, push, set, unset),
-- ?7 field, ?8 key, ?9 value as JSON, ?10 want (NULL any, -1 none, -2 some), ?11 ttl in ms,
-- ?12 correlation, ?13 causation, ?14 actor
-- do
INSERT INTO holdfast_scope AS s
    (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at, born)
  WITH n AS MATERIALIZED (
       SELECT b.now, b.version, b.alive, b.old, b.old -> (b.path || '.' || json_quote(?8)) AS record,
              CASE ?6
                      WHEN 'inc' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, CAST(?9 AS INTEGER))
                                           WHEN b.type = 'integer' AND typeof(b.old ->> b.path) = 'integer'
                                            AND typeof((b.old ->> b.path) + CAST(?9 AS INTEGER)) = 'integer'
                                           THEN json_set(b.old, b.path, (b.old ->> b.path) + CAST(?9 AS INTEGER)) END
                      WHEN 'patch' THEN json_patch(b.old, ?9)
                      WHEN 'push' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, json_array(json(?9)))
                                            WHEN b.type = 'array' THEN json_set(b.old, b.path || '[#]', json(?9)) END
                      WHEN 'set' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, json_object(?8, json(?9)))
                                           WHEN b.type = 'object' THEN json_set(b.old, b.path || '.' || json_quote(?8), json(?9)) END
                      WHEN 'unset' THEN CASE WHEN b.type IS NULL THEN b.old
                                             WHEN b.type = 'object' THEN json_remove(b.old, b.path || '.' || json_quote(?8)) END
                      END AS state
         FROM (SELECT a.*, nullif(json_type(a.old, a.path), 'null') AS type
                 FROM (SELECT t.now, x.version, x.state IS NOT NULL AS alive, coalesce(x.state, '{}') AS old, '$.' || json_quote(?7) AS path
                         FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS x
                           ON x.shard = ?1 AND x.workspace = ?2 AND x.kind = ?4 AND x.id = ?5
                          AND x.state IS NOT NULL AND (x.expires_at IS NULL OR x.expires_at > t.now)) AS a) AS b),
       f AS MATERIALIZED (
       SELECT coalesce((SELECT f.version FROM holdfast_scope_floor AS f WHERE f.shard = ?1 AND f.workspace = ?2 AND f.kind = ?4), 0) AS version)
SELECT ?1, ?2, ?4, ?5, f.version, n.state, n.now, n.now, n.now + ?11, f.version
  FROM n CROSS JOIN f
 WHERE (?10 IS NULL OR ?10 = CASE WHEN n.alive THEN n.version ELSE -1 END OR (?10 = -2 AND n.alive))
   AND n.state IS NOT NULL AND (octet_length(n.state) <= 1048576 OR octet_length(n.state) < octet_length(n.old))
   AND CASE WHEN n.alive OR ?6 = 'unset' THEN n.state <> n.old ELSE true END
   AND (?6 <> 'set' OR NOT n.alive OR n.record IS NULL OR octet_length(n.record) <> octet_length(?9)
        OR EXISTS (SELECT j.fullkey, j.type, j.atom FROM json_tree(?9) AS j
                   EXCEPT SELECT j.fullkey, j.type, j.atom FROM json_tree(n.record) AS j)
        OR (?9 GLOB '*' || replace('xxxxxxxxxxxxxxxx', 'x', '[.0-9]') || '*' AND
            EXISTS (WITH d AS MATERIALIZED (SELECT '[' || n.record || ',' || ?9 || ']' AS both FROM n),
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
   SET version = s.version + 1, state = excluded.state, updated_at = excluded.updated_at, expires_at = excluded.expires_at
RETURNING version, state, 1
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, s.version, ?6,
       CASE ?6 WHEN 'patch' THEN '{}'
               WHEN 'inc' THEN json_object('field', ?7, 'by', CAST(?9 AS INTEGER), 'value', s.state ->> ('$.' || json_quote(?7)))
               WHEN 'push' THEN json_object('field', ?7)
               ELSE json_object('field', ?7, 'key', ?8) END, ?12, ?13, ?14, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
-- else
SELECT CASE WHEN n.alive THEN n.version ELSE -1 END, CASE WHEN n.alive THEN n.old ELSE 'null' END,
       CASE WHEN NOT (?10 IS NULL OR ?10 = CASE WHEN n.alive THEN n.version ELSE -1 END OR (?10 = -2 AND n.alive)) THEN 3
            WHEN n.state IS NULL OR (octet_length(n.state) > 1048576 AND n.state <> n.old) THEN 0
            ELSE 2 END
  FROM (SELECT b.version, b.alive, b.old,
              CASE ?6
                      WHEN 'inc' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, CAST(?9 AS INTEGER))
                                           WHEN b.type = 'integer' AND typeof(b.old ->> b.path) = 'integer'
                                            AND typeof((b.old ->> b.path) + CAST(?9 AS INTEGER)) = 'integer'
                                           THEN json_set(b.old, b.path, (b.old ->> b.path) + CAST(?9 AS INTEGER)) END
                      WHEN 'patch' THEN json_patch(b.old, ?9)
                      WHEN 'push' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, json_array(json(?9)))
                                            WHEN b.type = 'array' THEN json_set(b.old, b.path || '[#]', json(?9)) END
                      WHEN 'set' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, json_object(?8, json(?9)))
                                           WHEN b.type = 'object' THEN json_set(b.old, b.path || '.' || json_quote(?8), json(?9)) END
                      WHEN 'unset' THEN CASE WHEN b.type IS NULL THEN b.old
                                             WHEN b.type = 'object' THEN json_remove(b.old, b.path || '.' || json_quote(?8)) END
                      END AS state
         FROM (SELECT a.*, nullif(json_type(a.old, a.path), 'null') AS type
                 FROM (SELECT t.now, x.version, x.state IS NOT NULL AS alive, coalesce(x.state, '{}') AS old, '$.' || json_quote(?7) AS path
                         FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS x
                           ON x.shard = ?1 AND x.workspace = ?2 AND x.kind = ?4 AND x.id = ?5
                          AND x.state IS NOT NULL AND (x.expires_at IS NULL OR x.expires_at > t.now)) AS a) AS b) AS n
