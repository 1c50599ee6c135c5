-- The time, read once for the statement.
t AS MATERIALIZED (
    SELECT {now} AS now
)
