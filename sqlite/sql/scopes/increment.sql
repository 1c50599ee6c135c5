-- Adds to an integer field of an existing scope, as scopes.edit does, or refuses.
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, updated_at = {now}, expires_at = {now} + :ttl,
       state = json_set(s.state, '$.' || json_quote(:field), (s.state ->> ('$.' || json_quote(:field))) + :amount)
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
   AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
   AND json_type(s.state, '$.' || json_quote(:field)) = 'integer'
   AND typeof(s.state ->> ('$.' || json_quote(:field))) = 'integer'
   AND typeof((s.state ->> ('$.' || json_quote(:field))) + :amount) = 'integer'
   AND octet_length(s.state) < 1048500
RETURNING version, state, 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, :did1, 'inc',
       json_object('field', :field, 'by', :amount, 'value', :did2 ->> ('$.' || json_quote(:field))), :correlation, :causation, :actor, {now}
-- else
SELECT -1, 'null', 0
