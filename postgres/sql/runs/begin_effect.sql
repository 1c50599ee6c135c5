-- As effects.begin, for a step.
WITH {members few}, cur AS MATERIALIZED (
    SELECT m.member, s.shard, s.workspace, s.run, s.name AS step, s.visit, s.run || '/' || s.name || '/' || s.visit::text AS operation, s.epoch, s.uncertain, s.until, m.epoch AS under,
           m.name, m.ordinal::integer AS ordinal, m.policy, m.results
      FROM m JOIN {schema}.step s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit
       FOR UPDATE OF s
), held AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.run, cur.step, cur.visit, cur.operation, cur.epoch, cur.name, cur.ordinal, cur.policy, cur.results
      FROM cur
     WHERE cur.epoch = cur.under AND cur.until > {now}
), {include effects/record_begin}, fresh AS MATERIALIZED ( -- separate, or the planner might read every step
    SELECT held.member, held.shard, held.workspace, held.run, held.step, held.visit, held.name = '$body' AS body
      FROM held JOIN put ON put.shard = held.shard AND put.workspace = held.workspace AND put.operation = held.operation
                        AND put.name = held.name AND put.ordinal = held.ordinal
), counted AS (
    UPDATE {schema}.step s
       SET begun = s.begun + 1, quiet = s.quiet AND fresh.body, lost = CASE WHEN fresh.body THEN s.lost ELSE 0 END
      FROM fresh
     WHERE s.shard = ANY (ARRAY[fresh.shard]) AND s.workspace = fresh.workspace AND s.run = fresh.run AND s.name = fresh.step AND s.visit = fresh.visit
    RETURNING fresh.member
), reported AS (
    UPDATE {schema}.step s
       SET quiet = false, lost = 0
      FROM held
     WHERE s.shard = ANY (ARRAY[held.shard]) AND s.workspace = held.workspace AND s.run = held.run AND s.name = held.step AND s.visit = held.visit
       AND s.quiet AND held.name <> '$body' AND held.member NOT IN (SELECT fresh.member FROM fresh)
)
{include effects/begin_result m.run || '/' || m.step || '/' || m.visit::text}
