-- Cancels batches. One of which nothing was ever taken has cost nothing and left nothing:
-- it is CANCELLED at once. Others are marked, so that nothing of them starts any more,
-- and are torn down.
-- $4 batch
-- $5 revision, $6 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::text[])
             WITH ORDINALITY AS m(shard, workspace, command, batch, revision, marks, member)
     WHERE {known}
), moved AS (
    UPDATE {schema}.batch b
       SET status = CASE WHEN b.next = 0 THEN 'CANCELLED' ELSE b.status END, cancel_requested = true, version = b.version + 1, updated_at = {now},
           due_at = CASE WHEN b.next = 0 THEN NULL ELSE {now} END
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       AND NOT b.cancel_requested AND b.status || '' NOT IN ('CANCELLED', 'COMPLETED') -- || '': by its key, not by the index of what is live
    RETURNING m.member, b.status, b.version, b.items, b.updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version,
           CASE WHEN moved.status = 'CANCELLED' THEN 'cancelled' ELSE 'cancelRequested' END,
           CASE WHEN moved.status = 'CANCELLED' THEN pg_catalog.json_build_object('cancelled', moved.items, 'charged', 0, 'refunded', 0) ELSE '{}'::json END,
           moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN moved ON moved.member = m.member
