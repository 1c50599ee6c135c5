-- Returns the state of an effect that was ended; {1} is its operation.
SELECT m.member, CASE WHEN held.member IS NULL THEN 0 WHEN put.member IS NULL AND (cur.begun <> seen.begun OR o.state = 'begun'
                AND (m.state <> 'notDone' OR m.person > 0 OR o.epoch = m.epoch)) THEN 2 ELSE 1 END, coalesce(put.state, o.state, ''),
       coalesce(CASE WHEN put.member IS NOT NULL THEN put.result ELSE o.result END::text, '')
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN seen ON seen.member = m.member
  LEFT JOIN held ON held.member = m.member
  LEFT JOIN put ON put.member = m.member
  LEFT JOIN {schema}.effect o ON o.shard = ANY (ARRAY[m.shard]) AND o.workspace = m.workspace AND o.operation = {1} AND o.name = m.name
                             AND o.ordinal = m.ordinal
