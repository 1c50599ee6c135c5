-- Is applied for each request that is unknown, if it gets the advisory lock on its key at once.
-- A row is inserted only under this lock (idempotency.take waits for it). So, until the end of the
-- transaction, no other request can begin with the same key, and idempotency.record does not wait.
-- unused: command
WITH {members}
SELECT m.member,
       CASE WHEN EXISTS (SELECT 1 FROM {schema}.request r WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key) THEN 0
            WHEN pg_catalog.pg_try_advisory_xact_lock({include idempotency/key_lock}) THEN 1
            ELSE 0 END,
       0
  FROM m
