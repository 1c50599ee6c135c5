-- Lists the reactions that still need events of a stream below a version, and why. Returns
-- the registry's revision even without such a reaction, because the list was made by one
-- revision. It is one statement, so that a due notice that is being collected is seen either
-- where it was or where it goes. No row is locked: see package streamclose.
-- :reactions those that follow the stream, as a JSON list; :below the version below which events are to go
SELECT g.revision, coalesce(w.name, ''), coalesce(w.why, '')
  FROM (SELECT coalesce((SELECT x.revision FROM {schema}.registry x WHERE x.shard = :shard AND x.workspace = :workspace), 0) AS revision) g
  LEFT JOIN (
       SELECT r.name,
              CASE WHEN r.state = 'waiting' THEN 'registering'
                   WHEN coalesce(f.watermark, -1) >= :below - 1 THEN NULL
                   WHEN f.blocked THEN 'blocked'
                   WHEN f.holder IS NOT NULL THEN 'held'
                   WHEN f.due > f.watermark THEN 'lagging'
                   WHEN EXISTS (SELECT 1 FROM {schema}.due d
                                 WHERE d.shard = :shard AND d.reaction = r.name AND d.workspace = :workspace AND d.stream = :stream
                                   AND d.version > coalesce(f.watermark, -1)) THEN 'lagging' END AS why
         FROM pg_catalog.jsonb_array_elements_text(:reactions::jsonb) AS q(name)
         JOIN {schema}.reaction r ON r.shard = :shard AND r.workspace = :workspace AND r.name = q.name
         LEFT JOIN LATERAL (
              SELECT f.watermark, f.blocked, f.holder, f.due FROM {schema}.follow f
               WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = q.name AND f.stream = :stream
               LIMIT 1) AS f ON true) w
    ON w.why IS NOT NULL
 ORDER BY w.name
