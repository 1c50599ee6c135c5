-- Records once which operation a transition has fired, under a lease that has not expired.
WITH {members}, cur AS MATERIALIZED (
    SELECT m.member, s.shard, s.workspace, s.run, s.name, s.visit, s.epoch, s.until, s.fired, m.epoch AS wanted, m.operation
      FROM m JOIN {schema}.step s ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit
       FOR UPDATE OF s
), put AS (
    UPDATE {schema}.step s
       SET fired = cur.operation
      FROM cur
     WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.name AND s.visit = cur.visit
       AND cur.epoch = cur.wanted AND cur.until > {now} AND cur.fired IS NULL
    RETURNING cur.member
)
{include store/select_applied put}
