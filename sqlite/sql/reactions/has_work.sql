WHEN 'held reaction' THEN (
     SELECT max(f.until - {now}, 0) FROM holdfast_follow AS f INDEXED BY holdfast_follow_held
      WHERE f.shard = t.value AND f.holder IS NOT NULL AND f.until <= {now} + :soon ORDER BY f.until LIMIT 1)
WHEN 'reaction' THEN (
     WITH RECURSIVE a(shard, reaction, workspace) AS ( -- from one workspace to the next, regardless of how many streams wait for a retry
         SELECT t.value, q.value ->> 1, ''
         UNION ALL
         SELECT a.shard, a.reaction, (SELECT f.workspace FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
                                       WHERE f.shard = a.shard AND f.reaction = a.reaction AND f.workspace > a.workspace
                                         AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
                                       ORDER BY f.workspace LIMIT 1)
           FROM a
          WHERE a.workspace IS NOT NULL
     )
     SELECT 0 FROM a
      WHERE a.workspace <> ''
        AND {include reactions/is_due}
      LIMIT 1)
WHEN 'unfinished reaction' THEN (
     SELECT 0 FROM holdfast_reaction AS r INDEXED BY holdfast_reaction_unfinished WHERE r.shard = t.value AND r.state <> 'live' LIMIT 1)
