-- The outcome for each entity that was found; {1} is the outcome of an entity that was not moved.
result AS (
    SELECT moved.member, 1 AS applied, {include entities/columns moved} FROM moved
    UNION ALL
    SELECT cur.member, {1}, {include entities/columns cur} FROM cur
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
)
