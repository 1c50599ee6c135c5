-- Returns the results of the members. {1} is the number of events of a member without then_event, {2} with it.
SELECT m.member,
       CASE WHEN ok.member IS NOT NULL THEN 1
            WHEN (cur.member IS NULL OR st.member IS NULL)
             AND EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run)
             AND EXISTS (SELECT 1 FROM {schema}.step s WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit) THEN 2
            ELSE 0 END,
       coalesce(ok.version + CASE WHEN ok.then_event IS NULL THEN {1} ELSE {2} END, cur.found, -1),
       {include runs/begun_until ok.}, t.now
  FROM t, m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN st ON st.member = m.member
  LEFT JOIN ok ON ok.member = m.member
