-- Records an administrative action, in the transaction of the action.
WITH {members}, made AS (
    INSERT INTO {schema}.audit (shard, workspace, id, action, subject, actor, request, before, after, at)
    SELECT m.shard, m.workspace, m.id, m.action, m.subject, m.actor, m.request, m.before::json, m.after::json, {now}
      FROM m
    ON CONFLICT (shard, workspace, id) DO NOTHING
    RETURNING shard, workspace, id
)
SELECT m.member, CASE WHEN made.id IS NOT NULL THEN 1 ELSE 0 END
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.id
