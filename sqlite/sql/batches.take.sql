-- Takes items of a batch, as many as may run at once, and reserves what those cost that
-- were never taken: in their order, as far as the wallet lasts. Nothing is taken of a
-- batch that is to be cancelled.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 holder, ?6 lease in ms, ?7 limit,
-- ?8 whether the holder is elsewhere, and quiet until it is heard of
-- do
UPDATE holdfast_item AS i
   SET state = 'running', charged = i.cost, holder = ?5, epoch = i.epoch + 1, quiet = ?8, until = {now} + min(?6, (SELECT b.timeout FROM holdfast_batch AS b WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4)), taken_at = {now}, taking = ?3,
       due_at = NULL, updated_at = {now}
 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key IN (
       WITH b AS MATERIALIZED (
           SELECT b.next, b.waiting, min(?7, b.parallel - b.running) AS room, w.balance, w.negative
             FROM holdfast_batch AS b JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
            WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
              AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel
       ), again AS MATERIALIZED (
           SELECT a.key FROM holdfast_item AS a INDEXED BY holdfast_item_waiting
            WHERE a.shard = ?1 AND a.workspace = ?2 AND a.batch = ?4 AND a.state = 'waiting' AND a.due_at <= {now}
            ORDER BY a.due_at
            LIMIT coalesce((SELECT b.room FROM b), 0)
       ), first AS MATERIALIZED (
           SELECT f.key, sum(f.cost) OVER (ORDER BY f.n) AS sum
             FROM (SELECT f.key, f.n, f.cost FROM holdfast_item AS f
                    WHERE f.shard = ?1 AND f.workspace = ?2 AND f.batch = ?4 AND f.n > (SELECT b.next FROM b)
                    ORDER BY f.n
                    LIMIT coalesce((SELECT b.room FROM b), 0) - (SELECT count(*) FROM again)) AS f
       )
       SELECT again.key FROM again
       UNION ALL
       SELECT first.key FROM first JOIN b
        WHERE first.sum = 0 OR first.sum <= b.balance OR b.negative AND typeof(b.balance - first.sum) = 'integer')
-- also
INSERT INTO holdfast_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
SELECT w.shard, w.workspace, w.id, w.version + row_number() OVER (ORDER BY i.n), -i.cost, w.balance - sum(i.cost) OVER (ORDER BY i.n), 'charge',
       '$batch/' || ?4 || '/charge/' || i.key, i.taken_at
  FROM holdfast_batch AS b
  JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
  JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.holder IS NOT NULL
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4 AND i.taking = ?3 AND i.n > b.next AND i.cost > 0
-- also
UPDATE holdfast_wallet AS w
   SET balance = w.balance - s.cost, version = w.version + s.paid, updated_at = {now}
  FROM (SELECT b.wallet, sum(i.cost) AS cost, count(*) AS paid
          FROM holdfast_batch AS b
          JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.holder IS NOT NULL
         WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4 AND i.taking = ?3 AND i.n > b.next AND i.cost > 0
         GROUP BY b.wallet) AS s
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = s.wallet
-- then
UPDATE holdfast_batch AS b
   SET status = 'RUNNING', next = b.next + s.first, waiting = b.waiting - s.again, running = b.running + s.first + s.again,
       charged = b.charged + s.cost, version = b.version + 1, served_at = {now}, updated_at = {now}
  FROM (SELECT count(*) FILTER (WHERE i.n > c.next) AS first, count(*) FILTER (WHERE i.n <= c.next) AS again,
               coalesce(sum(i.cost) FILTER (WHERE i.n > c.next), 0) AS cost
          FROM holdfast_batch AS c
          JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.holder IS NOT NULL
         WHERE c.shard = ?1 AND c.workspace = ?2 AND c.id = ?4 AND i.taking = ?3) AS s
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version, 'itemsTaken',
       (SELECT json_object('keys', json_group_array(i.key), 'charged', coalesce(sum(i.cost) FILTER (WHERE i.epoch = 1), 0))
          FROM holdfast_item AS i INDEXED BY holdfast_item_held
         WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.holder IS NOT NULL AND i.taking = ?3), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- then
SELECT (SELECT json_group_array(json_array(i.key, i.epoch, json(i.input), i.failures, i.deaths))
          FROM (SELECT i.key, i.epoch, i.input, i.failures, i.deaths
                  FROM holdfast_item AS i INDEXED BY holdfast_item_held
                 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.holder IS NOT NULL AND i.taking = ?3
                 ORDER BY i.n) AS i),
       (SELECT max(i.until)
          FROM holdfast_item AS i INDEXED BY holdfast_item_held
         WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.holder IS NOT NULL AND i.taking = ?3),
       b.timeout, b.artifacts, 0
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT '[]', {now} + ?6, coalesce(b.timeout, 0), coalesce(b.artifacts, 0),
       coalesce(b.running = 0 AND b.waiting = 0 AND b.next < b.items AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_batch AS b ON b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
