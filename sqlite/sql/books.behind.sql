-- The reactions that still need something of a stream, and why: of those that
-- follow it, each that is not ready for events below a version to go. Answers
-- the registry's revision in any case, for the list is made by one.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 reactions that follow it, as a JSON list,
-- ?5 version below which events are to go
-- do
SELECT g.revision, coalesce(w.name, ''), coalesce(w.why, '')
  FROM (SELECT coalesce((SELECT x.revision FROM holdfast_registry AS x WHERE x.shard = ?1 AND x.workspace = ?2), 0) AS revision) AS g
  LEFT JOIN (
       SELECT r.name,
              CASE WHEN r.state = 'waiting' THEN 'registering'
                   WHEN coalesce(f.watermark, -1) >= ?5 - 1 THEN NULL
                   WHEN f.blocked THEN 'blocked'
                   WHEN f.holder IS NOT NULL THEN 'held'
                   WHEN f.due > f.watermark THEN 'lagging' END AS why
         FROM json_each(?4) AS q
         JOIN holdfast_reaction AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.name = q.value
         LEFT JOIN holdfast_follow AS f
           ON f.shard = ?1 AND f.workspace = ?2 AND f.reaction = q.value AND f.stream = ?3) AS w
    ON w.why IS NOT NULL
 ORDER BY w.name
