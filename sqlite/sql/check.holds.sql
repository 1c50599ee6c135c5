-- Counts the holds that ended some time ago and that nobody has freed, in all
-- workspaces.
-- ?3 how long ago, in ms
-- do
SELECT count(*)
  FROM holdfast_task AS k
 WHERE k.holder IS NOT NULL AND k.until <= {now} - ?3
