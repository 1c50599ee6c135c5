-- Locks a run, for a transaction that changes one of its steps first.
WITH {members}, r AS MATERIALIZED (
    SELECT m.member
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
       FOR UPDATE OF r
)
{include store/select_applied r}
