-- Reads :scan approvals in the order of their keys, after a given one, and returns those of a status, and the last one that it read.
-- :last sorts after every run; :status ('' for any); a pending approval past its expiry counts as expired, although that is stored later
WITH edge AS (
    SELECT a.run, a.step, a.visit FROM {schema}.approval AS a
     WHERE a.shard = :shard AND a.workspace = :workspace AND (a.run, a.step, a.visit) > (:run, :step, :visit)
     ORDER BY a.run, a.step, a.visit
     LIMIT 1 OFFSET :scan - 1
), j AS (
    SELECT a.*, coalesce((a.run, a.step, a.visit) = (SELECT edge.run, edge.step, edge.visit FROM edge), false) AS at_edge,
           :status = '' OR :status = CASE WHEN a.status = 'pending' AND a.expires_at <= {now} THEN 'expired' ELSE a.status END AS wanted
      FROM {schema}.approval AS a
     WHERE a.shard = :shard AND a.workspace = :workspace AND (a.run, a.step, a.visit) > (:run, :step, :visit)
       AND (a.run, a.step, a.visit) <= (coalesce((SELECT edge.run FROM edge), :last), coalesce((SELECT edge.step FROM edge), ''), coalesce((SELECT edge.visit FROM edge), 0))
)
SELECT a.wanted, a.at_edge, a.run, a.step, a.visit, a.prompt, a.requesters{text}, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content{text}, ''),
       coalesce(a.expires_at, {no_time}), coalesce(a.expires_at <= {now}, false), a.created_at, coalesce(a.decided_at, {no_time})
  FROM j AS a
 WHERE a.wanted OR a.at_edge
 ORDER BY a.run, a.step, a.visit
 LIMIT :limit
