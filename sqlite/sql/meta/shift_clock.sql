-- Shifts the database's time, for tests.
UPDATE holdfast_clock AS c SET shift = c.shift + :by WHERE c.one = 1
RETURNING shift
