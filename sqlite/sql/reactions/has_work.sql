WHEN 'held reaction' THEN (
     SELECT max(f.until - {now}, 0) FROM holdfast_follow AS f INDEXED BY holdfast_follow_held
      WHERE f.shard = t.value AND f.holder IS NOT NULL AND f.until <= {now} + :soon ORDER BY f.until LIMIT 1)
WHEN 'reaction' THEN (
     SELECT 0 FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
      WHERE f.shard = t.value AND f.reaction = q.value ->> 1 AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now} LIMIT 1)
WHEN 'unfinished reaction' THEN (
     SELECT 0 FROM holdfast_reaction AS r INDEXED BY holdfast_reaction_unfinished WHERE r.shard = t.value AND r.state <> 'live' LIMIT 1)
