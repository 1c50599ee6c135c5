-- As effects.end, for a step.
WITH {members few}, cur AS MATERIALIZED (
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
), {include effects/record_end held.run, held.step, held.visit}, counted AS (
    UPDATE {schema}.step s
       SET begun = s.begun - 1
      FROM put
     WHERE s.shard = ANY (ARRAY[put.shard]) AND s.workspace = put.workspace AND s.run = put.run AND s.name = put.step AND s.visit = put.visit
       AND put.state = 'notDone'
    RETURNING put.member
)
{include effects/end_result m.run || '/' || m.step || '/' || m.visit::text}
