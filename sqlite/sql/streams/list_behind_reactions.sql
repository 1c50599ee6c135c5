-- Lists the reactions that still need events of a stream below a version, and why.
SELECT g.revision, coalesce(w.name, ''), coalesce(w.why, '')
  FROM (SELECT coalesce((SELECT x.revision FROM holdfast_registry AS x WHERE x.shard = :shard AND x.workspace = :workspace), 0) AS revision) AS g
  LEFT JOIN (
       SELECT r.name,
              CASE WHEN r.state = 'waiting' THEN 'registering'
                   WHEN coalesce(f.watermark, -1) >= :below - 1 THEN NULL
                   WHEN f.blocked THEN 'blocked'
                   WHEN f.holder IS NOT NULL THEN 'held'
                   WHEN f.due > f.watermark THEN 'lagging' END AS why
         FROM json_each(:reactions) AS q
         JOIN holdfast_reaction AS r ON r.shard = :shard AND r.workspace = :workspace AND r.name = q.value
         LEFT JOIN holdfast_follow AS f
           ON f.shard = :shard AND f.workspace = :workspace AND f.reaction = q.value AND f.stream = :stream) AS w
    ON w.why IS NOT NULL
 ORDER BY w.name
