-- Adds to an integer field of a scope, or does nothing.
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, updated_at = {now}, expires_at = {now} + :ttl,
       state = json_set(s.state, '$.' || json_quote(:field), (s.state ->> ('$.' || json_quote(:field))) + CAST(:value AS INTEGER))
 WHERE :op = 'inc' AND :value <> '0'
   AND s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
   AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
   AND (:want IS NULL OR s.version = :want)
   AND json_type(s.state, '$.' || json_quote(:field)) = 'integer'
   AND typeof(s.state ->> ('$.' || json_quote(:field))) = 'integer'
   AND typeof((s.state ->> ('$.' || json_quote(:field))) + CAST(:value AS INTEGER)) = 'integer'
   AND octet_length(s.state) < 1048500
RETURNING version, state, 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, :did1, :op,
       json_object('field', :field, 'by', CAST(:value AS INTEGER), 'value', :did2 ->> ('$.' || json_quote(:field))), :correlation, :causation, :actor, {now}
