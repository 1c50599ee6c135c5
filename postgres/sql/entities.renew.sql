-- Extends a hold that has not run out, at the most until so long after it was taken. The row is locked first: a statement that
-- waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 lifecycle, $4 entity, $5 operation, $6 epoch, $7 lease in ms, $8 the longest in ms, 0 for none,
-- $9 whether it is for its holder, who was heard of by that
WITH cur AS (
    SELECT e.shard, e.workspace, e.lifecycle, e.id, e.operation, e.epoch, e.until, e.due_at
      FROM {schema}.entity e
     WHERE e.shard = $1::smallint AND e.workspace = $2::text AND e.lifecycle = $3::text AND e.id = $4::text
       FOR UPDATE
)
UPDATE {schema}.entity e
   SET until = CASE WHEN $8::bigint = 0 THEN {now} + $7::bigint::float8 * interval '1 ms'
                    ELSE least({now} + $7::bigint::float8 * interval '1 ms', cur.due_at + $8::bigint::float8 * interval '1 ms') END,
       quiet = e.quiet AND $9::bigint = 0, lost = CASE WHEN $9 = 0 THEN e.lost ELSE 0 END
  FROM cur
 WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
   AND cur.operation = $5::text AND cur.epoch = $6::bigint AND cur.until > {now} AND ($8::bigint = 0 OR {now} < cur.due_at + $8::bigint::float8 * interval '1 ms')
   AND e.epoch = $6::bigint
RETURNING e.until
