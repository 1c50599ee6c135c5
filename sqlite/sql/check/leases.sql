-- Counts leases that expired some time ago and were not released, in all workspaces: of
-- entities, reactions, items, steps, and streams that were being closed.
SELECT (SELECT count(*)
          FROM holdfast_entity AS e
         WHERE e.holder IS NOT NULL AND e.until <= {now} - :ago)
     + (SELECT count(*)
          FROM holdfast_follow AS f
         WHERE f.holder IS NOT NULL AND f.until <= {now} - :ago)
     + (SELECT count(*)
          FROM holdfast_stream AS s
         WHERE s.holder IS NOT NULL AND s.until <= {now} - :ago)
     + (SELECT count(*)
          FROM holdfast_item AS i
         WHERE i.holder IS NOT NULL AND i.until <= {now} - :ago)
     + (SELECT count(*)
          FROM holdfast_step AS p
         WHERE p.holder IS NOT NULL AND p.until <= {now} - :ago)
