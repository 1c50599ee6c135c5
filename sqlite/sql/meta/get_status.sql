-- Returns the newest migration, the database's time, and whether servers delete by default what has ended.
SELECT (SELECT coalesce(max(g.number), 0) FROM holdfast_migration AS g), {now}, coalesce((SELECT r.by_default FROM holdfast_retention AS r WHERE r.one = 1), 0)
