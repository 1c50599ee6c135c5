-- Creates a reaction or changes its selection. SQLite has one writer, so no transaction
-- writes without seeing it.
INSERT INTO holdfast_reaction AS r
    (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, waits, created_at, updated_at)
VALUES (:shard, :workspace, :name, :source, :events, :streams, :options, :deaths, :priority, :base, 'live', NULL, {now}, {now})
ON CONFLICT (shard, workspace, name) DO UPDATE
   SET source = excluded.source, events = excluded.events, streams = excluded.streams,
       options = CASE WHEN r.state <> 'removed' AND r.options ->> 'program' AND r.source = excluded.source AND r.events = excluded.events AND r.streams = excluded.streams
                      THEN json_set(excluded.options, '$.program', json('true')) ELSE excluded.options END, -- a reaction that a program serves stays with the program
       max_deaths = excluded.max_deaths, priority = excluded.priority, base = excluded.base, state = 'live', waits = NULL,
       created_at = CASE WHEN r.state = 'removed' THEN excluded.created_at ELSE r.created_at END, updated_at = excluded.updated_at
RETURNING name
