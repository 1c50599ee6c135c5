-- Counts the holds that ended some time ago and that nobody has freed, in all
-- workspaces.
-- $3 how long ago, in ms
SELECT count(*)
  FROM {schema}.task k
 WHERE k.holder IS NOT NULL AND k.until <= {now} - $3::bigint * interval '1 ms'
   AND $1::smallint IS NOT NULL AND $2::text IS NOT NULL
