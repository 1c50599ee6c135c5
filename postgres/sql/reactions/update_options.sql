-- Updates the options of a reaction, not its selection. A reaction that a program serves stays with the program.
WITH {members}, moved AS (
    UPDATE {schema}.reaction r
       SET options = CASE WHEN r.options ->> 'program'::text = 'true'::text THEN m.options::jsonb || '{"program":true}'::jsonb ELSE m.options::jsonb END,
           max_deaths = m.deaths, priority = m.priority, updated_at = {now}
      FROM m
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.name = m.name AND r.state <> 'removed'
    RETURNING r.shard, r.workspace, r.name
)
SELECT m.member, CASE WHEN moved.name IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN moved ON moved.shard = m.shard AND moved.workspace = m.workspace AND moved.name = m.name
