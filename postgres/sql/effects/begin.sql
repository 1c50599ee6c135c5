-- Records that an effect is about to be attempted, under a lease that has not expired, with
-- the results of earlier effects. Returns its state: new, or what the journal has. An effect
-- that was attempted and is known not to have happened is new again, unless a later effect
-- of the same name exists: then it is skipped, as it was before. The call counts as a report
-- of the holder, except for a body, which is begun on behalf of the worker that gets the
-- task. A statement that waited while another one began the effect does not see that, and
-- the caller retries.
-- :results a JSON list of {n: name, o: ordinal, r: result}
WITH {members few}, cur AS MATERIALIZED (
    SELECT m.member, e.shard, e.workspace, e.lifecycle, e.id, e.operation, e.epoch, e.phase, e.until, m.operation AS wanted, m.epoch AS under,
           m.name, m.ordinal::integer AS ordinal, m.policy, m.results
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
       FOR UPDATE OF e
), held AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.lifecycle, cur.id, cur.operation, cur.epoch, cur.name, cur.ordinal, cur.policy, cur.results
      FROM cur
     WHERE cur.operation = cur.wanted AND cur.epoch = cur.under AND cur.phase = 'held' AND cur.until > {now}
), {include effects/record_begin}, fresh AS MATERIALIZED ( -- separate, or the planner might read every entity
    SELECT held.member, held.shard, held.workspace, held.lifecycle, held.id, held.name = '$body' AS body
      FROM held JOIN put ON put.shard = held.shard AND put.workspace = held.workspace AND put.operation = held.operation
                        AND put.name = held.name AND put.ordinal = held.ordinal
), counted AS (
    UPDATE {schema}.entity e
       SET begun = e.begun + 1, quiet = e.quiet AND fresh.body, lost = CASE WHEN fresh.body THEN e.lost ELSE 0 END
      FROM fresh
     WHERE e.shard = ANY (ARRAY[fresh.shard]) AND e.workspace = fresh.workspace AND e.lifecycle = fresh.lifecycle AND e.id = fresh.id
    RETURNING fresh.member
), reported AS (
    UPDATE {schema}.entity e
       SET quiet = false, lost = 0
      FROM held
     WHERE e.shard = ANY (ARRAY[held.shard]) AND e.workspace = held.workspace AND e.lifecycle = held.lifecycle AND e.id = held.id
       AND e.quiet AND held.name <> '$body' AND held.member NOT IN (SELECT fresh.member FROM fresh)
)
{include effects/begin_result m.operation}
