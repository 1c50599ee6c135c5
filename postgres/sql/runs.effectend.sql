-- Notes what became of an effect: done, with its result, or known not to have
-- happened; under a hold that has not run out or, by a person, while its operation
-- is uncertain. Answers how the effect stands then, with its result. Whoever had to wait
-- while another ended it still sees it begun, or does not see it if another began it, and
-- asks again. That a repeated call did not happen
-- says nothing of the earlier one: such an effect stays begun, unless the other side was asked about it.
-- $1 shard, $2 workspace, $3 command, $4 run, $5 step, $6 visit, $7 epoch, $8 name, $9 ordinal, $10 state, $11 result,
-- $12 whose word it is: 0 a holder's, 1 a person's, 2 of a holder that asked the other side
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[],
                         $10::text[], $11::text[], $12::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, run, step, visit, epoch, name, ordinal, state, result, person, member)
     WHERE m.member + 0 = m.member -- few, for the planner
), cur AS MATERIALIZED (
    SELECT m.member, s.shard, s.workspace, s.run, s.name AS step, s.visit, s.run || '/' || s.name || '/' || s.visit::text AS operation, s.epoch, s.uncertain, s.until, s.begun, m.epoch AS under,
           m.name, m.ordinal::integer AS ordinal, m.state, m.result, m.person
      FROM m JOIN {schema}.step s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit
       FOR UPDATE OF s
), seen AS (
    SELECT m.member, s.begun
      FROM m JOIN {schema}.step s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit
), held AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.run, cur.step, cur.visit, cur.operation, cur.name, cur.ordinal, cur.state, cur.result, cur.under, cur.person
      FROM cur
     WHERE cur.epoch = cur.under
       AND CASE WHEN cur.person = 1 THEN cur.uncertain ELSE coalesce(cur.until > {now}, false) END
), put AS (
    UPDATE {schema}.effect x
       SET state = held.state, result = held.result::json, ended_at = {now}
      FROM held
     WHERE x.shard = ANY (ARRAY[held.shard]) AND x.workspace = held.workspace AND x.operation = held.operation AND x.name = held.name
       AND x.ordinal = held.ordinal AND x.state = 'begun'
       AND (held.state <> 'notDone' OR held.person > 0 OR x.epoch = held.under)
    RETURNING held.member, held.shard, held.workspace, held.run, held.step, held.visit, x.state, x.result
), counted AS (
    UPDATE {schema}.step s
       SET begun = s.begun - 1
      FROM put
     WHERE s.shard = ANY (ARRAY[put.shard]) AND s.workspace = put.workspace AND s.run = put.run AND s.name = put.step AND s.visit = put.visit
       AND put.state = 'notDone'
    RETURNING put.member
)
SELECT m.member, CASE WHEN held.member IS NULL THEN 0 WHEN put.member IS NULL AND (cur.begun <> seen.begun OR o.state = 'begun'
                AND (m.state <> 'notDone' OR m.person > 0 OR o.epoch = m.epoch)) THEN 2 ELSE 1 END, coalesce(put.state, o.state, ''),
       coalesce(CASE WHEN put.member IS NOT NULL THEN put.result ELSE o.result END::text, '')
  FROM m
  LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN seen ON seen.member = m.member
  LEFT JOIN held ON held.member = m.member
  LEFT JOIN put ON put.member = m.member
  LEFT JOIN {schema}.effect o ON o.shard = ANY (ARRAY[m.shard]) AND o.workspace = m.workspace AND o.operation = m.run || '/' || m.step || '/' || m.visit::text AND o.name = m.name
                             AND o.ordinal = m.ordinal
