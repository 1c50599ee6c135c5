-- Takes items of a batch, up to its concurrency, and charges the wallet for items that were
-- never taken before: in their order, as far as the balance allows. Takes nothing of a
-- batch that is being cancelled. The items of this take are found again by the end of their
-- lease: the other items that are held need not be read.
-- do
UPDATE holdfast_item AS i
   SET state = 'running', charged = i.cost, holder = :holder, epoch = i.epoch + 1, quiet = :quiet,
       until = {now} + min(:lease, (SELECT b.timeout {include batches/by_id})), taken_at = {now}, taking = :command, due_at = NULL, updated_at = {now}
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key IN (
       WITH b AS MATERIALIZED (
           SELECT b.next, b.waiting, min(:room, b.parallel - b.running) AS room, w.balance, w.negative
             FROM holdfast_batch AS b JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
            WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
              AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel
       ), again AS MATERIALIZED (
           SELECT a.key FROM holdfast_item AS a INDEXED BY holdfast_item_waiting
            WHERE a.shard = :shard AND a.workspace = :workspace AND a.batch = :batch AND a.state = 'waiting' AND a.due_at <= {now}
            ORDER BY a.due_at
            LIMIT coalesce((SELECT b.room FROM b), 0)
       ), first AS MATERIALIZED (
           SELECT f.key, sum(f.cost) OVER (ORDER BY f.n) AS sum
             FROM (SELECT f.key, f.n, f.cost FROM holdfast_item AS f
                    WHERE f.shard = :shard AND f.workspace = :workspace AND f.batch = :batch AND f.n > (SELECT b.next FROM b)
                    ORDER BY f.n
                    LIMIT coalesce((SELECT b.room FROM b), 0) - (SELECT count(*) FROM again)) AS f
       )
       SELECT again.key FROM again
       UNION ALL
       SELECT first.key FROM first JOIN b
        WHERE first.sum = 0 OR first.sum <= b.balance OR b.negative AND typeof(b.balance - first.sum) = 'integer')
RETURNING until
-- also
INSERT INTO holdfast_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
SELECT w.shard, w.workspace, w.id, w.version + row_number() OVER (ORDER BY i.n), -i.cost, w.balance - sum(i.cost) OVER (ORDER BY i.n), 'charge',
       '$batch/' || :batch || '/charge/' || i.key, i.taken_at
  FROM holdfast_batch AS b
  JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
  JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.holder IS NOT NULL AND i.until = :did1
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND i.taking = :command AND i.n > b.next AND i.cost > 0
-- also
UPDATE holdfast_wallet AS w
   SET balance = l.balance, version = l.n, updated_at = {now}
  FROM (SELECT l.n, l.balance
          FROM holdfast_batch AS b JOIN holdfast_ledger AS l ON l.shard = b.shard AND l.workspace = b.workspace AND l.wallet = b.wallet
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
         ORDER BY l.n DESC
         LIMIT 1) AS l
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = (SELECT b.wallet {include batches/by_id}) AND w.version < l.n
-- then
UPDATE holdfast_batch AS b
   SET status = 'RUNNING', next = b.next + s.first, waiting = b.waiting - s.again, running = b.running + s.first + s.again,
       charged = b.charged + s.cost, version = b.version + 1, served_at = {now}, updated_at = {now}
  FROM (SELECT count(*) FILTER (WHERE i.n > c.next) AS first, count(*) FILTER (WHERE i.n <= c.next) AS again,
               coalesce(sum(i.cost) FILTER (WHERE i.n > c.next), 0) AS cost
          FROM holdfast_batch AS c
          JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.holder IS NOT NULL AND i.until = :did1
         WHERE c.shard = :shard AND c.workspace = :workspace AND c.id = :batch AND i.taking = :command) AS s
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'itemsTaken',
       (SELECT json_object('keys', json_group_array(i.key), 'charged', coalesce(sum(i.cost) FILTER (WHERE i.epoch = 1), 0))
          FROM holdfast_item AS i INDEXED BY holdfast_item_held
         WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.holder IS NOT NULL AND i.until = :did1 AND i.taking = :command), NULL, NULL, NULL, b.updated_at
  {include batches/by_id}
-- then
SELECT (SELECT json_group_array(json_array(i.key, i.epoch, json(i.input), i.failures, i.deaths))
          FROM (SELECT i.key, i.epoch, i.input, i.failures, i.deaths
                  FROM holdfast_item AS i INDEXED BY holdfast_item_held
                 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.holder IS NOT NULL AND i.until = :did1 AND i.taking = :command
                 ORDER BY i.n) AS i),
       :did1, b.timeout, b.artifacts, 0
  {include batches/by_id}
-- else
SELECT '[]', {now} + :lease, coalesce(b.timeout, 0), coalesce(b.artifacts, 0),
       coalesce(b.running = 0 AND b.waiting = 0 AND b.next < b.items AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_batch AS b ON b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
