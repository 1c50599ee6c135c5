-- There is one writer: a transaction that writes has everything locked.
-- do
SELECT 1 {include runs/one}
-- else
SELECT 1
