-- Notes that an effect is about to be tried, under a hold that has not run out, and
-- with it the results of earlier ones. Answers how it stands: new, or what is known
-- of it. One that was tried and is known not to have happened is new again, unless
-- there is a later one of its name: then it is passed over, as it was then. The
-- holder was heard of, except by a body: that is begun for who is handed it. Whoever had to
-- wait while another began it does not see that, and asks again.
-- $1 shard, $2 workspace, $3 command, $4 run, $5 step, $6 visit, $7 epoch, $8 name, $9 ordinal, $10 policy,
-- $11 results, a JSON list of {n: name, o: ordinal, r: result}
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[],
                         $10::text[], $11::text[])
             WITH ORDINALITY AS m(shard, workspace, command, run, step, visit, epoch, name, ordinal, policy, results, member)
     WHERE m.member + 0 = m.member -- few, for the planner
), cur AS MATERIALIZED (
    SELECT m.member, s.shard, s.workspace, s.run, s.name AS step, s.visit, s.run || '/' || s.name || '/' || s.visit::text AS operation, s.epoch, s.uncertain, s.until, m.epoch AS under,
           m.name, m.ordinal::integer AS ordinal, m.policy, m.results
      FROM m JOIN {schema}.step s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit
       FOR UPDATE OF s
), held AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.run, cur.step, cur.visit, cur.operation, cur.epoch, cur.name, cur.ordinal, cur.policy, cur.results
      FROM cur
     WHERE cur.epoch = cur.under AND cur.until > {now}
), results AS (
    UPDATE {schema}.effect x
       SET state = 'done', result = (r.item -> 'r'::text)::text::json, ended_at = {now}
      FROM held CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(held.results::jsonb) AS r(item)
     WHERE x.shard = ANY (ARRAY[held.shard]) AND x.workspace = held.workspace AND x.operation = held.operation
       AND x.name = r.item ->> 'n'::text AND x.ordinal = (r.item ->> 'o'::text)::integer AND x.state = 'begun'
), put AS (
    INSERT INTO {schema}.effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
    SELECT held.shard, held.workspace, held.operation, held.name, held.ordinal, held.epoch, 'begun', held.policy, {now} FROM held
    ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
       SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
     WHERE x.state = 'notDone'
       AND NOT EXISTS (SELECT 1 FROM {schema}.effect y WHERE y.shard = ANY (ARRAY[x.shard]) AND y.workspace = x.workspace AND y.operation = x.operation
                                                         AND y.name = x.name AND y.ordinal > x.ordinal)
    RETURNING x.shard, x.workspace, x.operation, x.name, x.ordinal
), fresh AS MATERIALIZED ( -- apart, or the planner might look at every step for it
    SELECT held.member, held.shard, held.workspace, held.run, held.step, held.visit, held.name = '$body' AS body
      FROM held JOIN put ON put.shard = held.shard AND put.workspace = held.workspace AND put.operation = held.operation
                        AND put.name = held.name AND put.ordinal = held.ordinal
), counted AS (
    UPDATE {schema}.step s
       SET begun = s.begun + 1, quiet = s.quiet AND fresh.body, lost = CASE WHEN fresh.body THEN s.lost ELSE 0 END
      FROM fresh
     WHERE s.shard = ANY (ARRAY[fresh.shard]) AND s.workspace = fresh.workspace AND s.run = fresh.run AND s.name = fresh.step AND s.visit = fresh.visit
    RETURNING fresh.member
), heard AS (
    UPDATE {schema}.step s
       SET quiet = false, lost = 0
      FROM held
     WHERE s.shard = ANY (ARRAY[held.shard]) AND s.workspace = held.workspace AND s.run = held.run AND s.name = held.step AND s.visit = held.visit
       AND s.quiet AND held.name <> '$body' AND held.member NOT IN (SELECT fresh.member FROM fresh)
)
SELECT m.member,
       CASE WHEN held.member IS NULL THEN 0
            WHEN counted.member IS NULL
                  AND (o.name IS NULL
                       OR o.state = 'notDone' AND NOT EXISTS (SELECT 1 FROM {schema}.effect y WHERE y.shard = ANY (ARRAY[o.shard]) AND y.workspace = o.workspace
                                                                 AND y.operation = o.operation AND y.name = o.name AND y.ordinal > o.ordinal)) THEN 2
            ELSE 1 END,
       CASE WHEN counted.member IS NOT NULL THEN 'new' ELSE coalesce(o.state, '') END, coalesce(o.epoch, 0), coalesce(o.policy, ''),
       coalesce(o.result::text, '')
  FROM m
  LEFT JOIN held ON held.member = m.member
  LEFT JOIN counted ON counted.member = m.member
  LEFT JOIN {schema}.effect o ON o.shard = ANY (ARRAY[m.shard]) AND o.workspace = m.workspace AND o.operation = m.run || '/' || m.step || '/' || m.visit::text AND o.name = m.name
                             AND o.ordinal = m.ordinal
