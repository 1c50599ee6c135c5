-- Does nothing: SQLite has one writer, so a writing transaction has everything locked.
-- do
SELECT 1 {include runs/by_id}
-- else
SELECT 1
