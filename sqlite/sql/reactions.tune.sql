-- Changes how a reaction is served, and nothing of what it follows. One that a program serves stays so.
-- ?1 shard, ?2 workspace, ?3 command, ?4 name, ?5 options, ?6 deaths allowed,
-- ?7 priority
-- do
UPDATE holdfast_reaction AS r
   SET options = CASE WHEN r.options ->> 'program' THEN json_set(?5, '$.program', json('true')) ELSE ?5 END,
       max_deaths = ?6, priority = ?7, updated_at = {now}
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?4 AND r.state <> 'removed'
RETURNING name
-- else
SELECT ''
