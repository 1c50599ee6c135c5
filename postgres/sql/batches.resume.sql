-- Resumes batches that are PAUSED. One that still lacks funds is paused again.
-- $4 batch
-- $5 revision, $6 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::text[])
             WITH ORDINALITY AS m(shard, workspace, command, batch, revision, marks, member)
     WHERE {known}
), moved AS (
    UPDATE {schema}.batch b
       SET status = CASE WHEN b.next = 0 THEN 'PENDING' ELSE 'RUNNING' END, need = 0, version = b.version + 1, updated_at = {now}
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch AND b.status || '' = 'PAUSED' AND NOT b.cancel_requested -- || '': by its key, not by the index of what is live
    RETURNING m.member, b.version, b.updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'resumed', '{}', moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN moved ON moved.member = m.member
