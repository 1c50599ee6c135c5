-- Removes a reaction: it gets no more due notices, and cannot be taken.
-- do
UPDATE holdfast_reaction AS r
   SET state = 'removed', waits = NULL, updated_at = {now}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :name AND r.state <> 'removed'
RETURNING name
-- else
SELECT ''
