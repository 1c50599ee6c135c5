-- Does nothing: SQLite has one writer, so a writing transaction has everything locked.
-- do
SELECT 1 {include batches/by_id}
-- else
SELECT 1
