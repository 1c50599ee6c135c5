-- Updates the options of a reaction, not its selection. A reaction that a program serves stays with the program.
-- do
UPDATE holdfast_reaction AS r
   SET options = CASE WHEN r.options ->> 'program' THEN json_set(:options, '$.program', json('true')) ELSE :options END,
       max_deaths = :deaths, priority = :priority, updated_at = {now}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :name AND r.state <> 'removed'
RETURNING name
-- else
SELECT ''
