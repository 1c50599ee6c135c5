-- Begins the first steps, writes the events and returns the results.
{include runs/begin_step ok.},
{include history/write_without_cause}
    {include runs/select_step_events ok.; -1}
    {due_notices}
SELECT m.member,
       CASE WHEN ok.member IS NOT NULL THEN 1 WHEN r.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(ok.run, r.id, ''), CASE WHEN m.then_event IS NULL THEN 0 ELSE 1 END::bigint, {include runs/begun_until ok.}, t.now
  FROM t, m
  LEFT JOIN ok ON ok.member = m.member
  LEFT JOIN LATERAL (
       SELECT r.id FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key LIMIT 1) AS r ON true
