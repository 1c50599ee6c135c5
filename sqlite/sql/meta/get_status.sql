-- Returns the newest migration, and the database's time.
SELECT (SELECT coalesce(max(g.number), 0) FROM holdfast_migration AS g), {now}
