-- Moves the database's time, for tests.
-- ?4 by how many milliseconds
-- do
UPDATE holdfast_clock AS c SET shift = c.shift + ?4 WHERE c.one = 1
RETURNING shift
