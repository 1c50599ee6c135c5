-- Adds to a whole number that a scope has, or does nothing.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 op, ?7 field, ?9 by, ?10 want,
-- ?11 ttl in ms, ?12 correlation, ?13 causation, ?14 actor
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, updated_at = {now}, expires_at = {now} + ?11,
       state = json_set(s.state, '$.' || json_quote(?7), (s.state ->> ('$.' || json_quote(?7))) + CAST(?9 AS INTEGER))
 WHERE ?6 = 'inc' AND ?9 <> '0'
   AND s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
   AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
   AND (?10 IS NULL OR s.version = ?10)
   AND json_type(s.state, '$.' || json_quote(?7)) = 'integer'
   AND typeof(s.state ->> ('$.' || json_quote(?7))) = 'integer'
   AND typeof((s.state ->> ('$.' || json_quote(?7))) + CAST(?9 AS INTEGER)) = 'integer'
   AND octet_length(s.state) < 1048500
RETURNING version, state, 1
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, :did1, ?6,
       json_object('field', ?7, 'by', CAST(?9 AS INTEGER), 'value', :did2 ->> ('$.' || json_quote(?7))), ?12, ?13, ?14, {now}
