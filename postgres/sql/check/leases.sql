-- Counts leases that expired some time ago and were not released, in all workspaces: of
-- entities, reactions, items, steps, and streams that were being closed.
SELECT (SELECT pg_catalog.count(*)
          FROM {schema}.entity e
         WHERE e.holder IS NOT NULL AND e.until <= (SELECT {now} - :ago::float8 * interval '1 ms'))
     + (SELECT pg_catalog.count(*)
          FROM {schema}.follow f
         WHERE f.holder IS NOT NULL AND f.until <= (SELECT {now} - :ago::float8 * interval '1 ms'))
     + (SELECT pg_catalog.count(*)
          FROM {schema}.stream s
         WHERE s.holder IS NOT NULL AND s.until <= (SELECT {now} - :ago::float8 * interval '1 ms'))
     + (SELECT pg_catalog.count(*)
          FROM {schema}.item i
         WHERE i.holder IS NOT NULL AND i.until <= (SELECT {now} - :ago::float8 * interval '1 ms'))
     + (SELECT pg_catalog.count(*)
          FROM {schema}.step p
         WHERE p.holder IS NOT NULL AND p.until <= (SELECT {now} - :ago::float8 * interval '1 ms'))
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
