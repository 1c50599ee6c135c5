-- Creates a reaction or changes its selection. The reaction then waits for the transactions
-- in flight, because they may write without seeing it.
WITH {members}, made AS (
    INSERT INTO {schema}.reaction AS r
        (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, waits, created_at, updated_at)
    SELECT m.shard, m.workspace, m.name, m.source, m.events::jsonb, m.streams, m.options::jsonb, m.deaths, m.priority, m.base,
           'waiting', NULL, {now}, {now}
      FROM m
     ORDER BY m.shard, m.workspace, m.name
    ON CONFLICT (shard, workspace, name) DO UPDATE
       SET source = excluded.source, events = excluded.events, streams = excluded.streams,
           options = CASE WHEN r.state <> 'removed' AND r.options ->> 'program'::text = 'true'::text AND r.source = excluded.source AND r.events = excluded.events AND r.streams = excluded.streams
                          THEN excluded.options || '{"program":true}'::jsonb ELSE excluded.options END, -- a reaction that a program serves stays with the program
           max_deaths = excluded.max_deaths, priority = excluded.priority, base = excluded.base, state = 'waiting', waits = NULL,
           created_at = CASE WHEN r.state = 'removed' THEN excluded.created_at ELSE r.created_at END, updated_at = excluded.updated_at
    RETURNING r.shard, r.workspace, r.name
)
SELECT m.member, CASE WHEN made.name IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.name = m.name
