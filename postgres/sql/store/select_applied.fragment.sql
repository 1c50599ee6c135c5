-- Returns for each member whether {1} has a row of it.
SELECT m.member, CASE WHEN {1}.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m LEFT JOIN {1} ON {1}.member = m.member
