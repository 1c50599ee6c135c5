-- Records the outcome of an effect: done, with its result, or known not to have happened;
-- under a lease that has not expired or, by a person, while its operation is uncertain.
-- Returns the state of the effect afterwards, with its result. A statement that waited while
-- another one ended or began the effect does not see that, and the caller retries. The fact
-- that a repeated call did not happen says nothing about the earlier call: such an effect
-- stays begun, unless the holder has asked the other side about it.
-- :person the source of the outcome: 0 a holder, 1 a person, 2 a holder that asked the other side
WITH {members few}, cur AS MATERIALIZED (
    SELECT m.member, e.shard, e.workspace, e.lifecycle, e.id, e.operation, e.epoch, e.phase, e.until, e.begun, m.operation AS wanted, m.epoch AS under,
           m.name, m.ordinal::integer AS ordinal, m.state, m.result, m.person
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
       FOR UPDATE OF e
), seen AS (
    SELECT m.member, e.begun
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
), held AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.lifecycle, cur.id, cur.operation, cur.name, cur.ordinal, cur.state, cur.result, cur.under, cur.person
      FROM cur
     WHERE cur.operation = cur.wanted AND cur.epoch = cur.under
       AND CASE WHEN cur.person = 1 THEN cur.phase = 'uncertain' ELSE cur.phase = 'held' AND cur.until > {now} END
), {include effects/record_end held.lifecycle, held.id}, counted AS (
    UPDATE {schema}.entity e
       SET begun = e.begun - 1
      FROM put
     WHERE e.shard = ANY (ARRAY[put.shard]) AND e.workspace = put.workspace AND e.lifecycle = put.lifecycle AND e.id = put.id
       AND put.state = 'notDone'
    RETURNING put.member
)
{include effects/end_result m.operation}
