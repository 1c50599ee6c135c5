-- Posts to ledgers, and adds to the balances. A reference that the ledger already has posts
-- nothing, and returns the existing posting. A posting is refused if it would take a balance
-- below zero that may not be negative, or out of 64 bits.
-- Several members may share a wallet: they are posted in their order. If one of them would
-- be refused, or exists already, none of them is posted here (outcome 2), and the caller
-- runs them one by one. The row is locked first. A statement that waited for it does not see
-- postings made meanwhile: the version differs, and the caller retries.
WITH {members}, {include store/time}, k AS (
    SELECT DISTINCT m.shard, m.workspace, m.wallet FROM m
), cur AS (
    SELECT w.shard, w.workspace, w.id, w.balance, w.negative, w.version
      FROM k JOIN {schema}.wallet w ON w.shard = ANY (ARRAY[k.shard]) AND w.workspace = k.workspace AND w.id = k.wallet
     ORDER BY k.shard, w.workspace, w.id
       FOR UPDATE OF w{skip}
), seen AS (
    SELECT w.shard, w.workspace, w.id, w.version
      FROM k JOIN {schema}.wallet w ON w.shard = ANY (ARRAY[k.shard]) AND w.workspace = k.workspace AND w.id = k.wallet
), sums AS (
    SELECT m.member, m.shard, m.workspace, m.wallet, m.delta, m.reason, m.reference, cur.negative, cur.version = seen.version AS fresh,
           cur.version + pg_catalog.row_number() OVER w AS n, cur.balance::numeric + pg_catalog.sum(m.delta) OVER w AS balance,
           EXISTS (SELECT 1 FROM {schema}.ledger l
                    WHERE l.shard + 0 = m.shard AND l.workspace = m.workspace AND l.wallet = m.wallet AND l.reference = m.reference)
           OR EXISTS (SELECT 1 FROM m AS x WHERE x.shard = m.shard AND x.workspace = m.workspace AND x.wallet = m.wallet
                                             AND x.reference = m.reference AND x.member < m.member) AS known
      FROM m
      JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.id = m.wallet
      JOIN seen ON seen.shard = m.shard AND seen.workspace = m.workspace AND seen.id = m.wallet
    WINDOW w AS (PARTITION BY m.shard, m.workspace, m.wallet ORDER BY m.member)
), fits AS (
    SELECT sums.shard, sums.workspace, sums.wallet, pg_catalog.count(*) AS members, pg_catalog.bool_and(sums.fresh) AS fresh, pg_catalog.bool_or(sums.known) AS known,
           pg_catalog.bool_and(NOT sums.known AND sums.fresh AND (sums.delta >= 0 OR sums.negative OR sums.balance >= 0::numeric)
                    AND sums.balance BETWEEN -9223372036854775807::numeric AND 9223372036854775807::numeric) AS yes
      FROM sums
     GROUP BY sums.shard, sums.workspace, sums.wallet
), posted AS (
    INSERT INTO {schema}.ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
    SELECT sums.shard, sums.workspace, sums.wallet, sums.n, sums.delta, sums.balance::bigint, sums.reason, sums.reference, t.now
      FROM t, sums JOIN fits ON fits.shard = sums.shard AND fits.workspace = sums.workspace AND fits.wallet = sums.wallet AND fits.yes
    RETURNING shard, workspace, wallet, n, balance, reference
), moved AS (
    UPDATE {schema}.wallet w
       SET balance = last.balance, version = last.n, updated_at = t.now
      FROM t, (SELECT DISTINCT ON (p.shard, p.workspace, p.wallet) p.shard, p.workspace, p.wallet, p.n, p.balance
                 FROM posted p
                ORDER BY p.shard, p.workspace, p.wallet, p.n DESC) AS last
     WHERE w.shard = ANY (ARRAY[last.shard]) AND w.workspace = last.workspace AND w.id = last.wallet
    RETURNING w.shard, w.workspace, w.id
)
SELECT m.member,
       CASE WHEN posted.n IS NOT NULL THEN 1
            WHEN fits.members IS NULL
            THEN CASE WHEN EXISTS (SELECT 1 FROM {schema}.wallet w WHERE w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.wallet) THEN 2 ELSE 0 END
            WHEN fits.members > 1 OR NOT fits.fresh THEN 2
            ELSE 0 END,
       CASE WHEN posted.n IS NOT NULL THEN 'posted' WHEN fits.members IS NULL THEN 'missing' WHEN fits.known THEN 'known' ELSE 'refused' END,
       coalesce(posted.balance, cur.balance, 0), coalesce(posted.n, cur.version, 0), coalesce(cur.negative, false),
       coalesce((SELECT l.delta FROM {schema}.ledger l
                  WHERE l.shard + 0 = m.shard AND l.workspace = m.workspace AND l.wallet = m.wallet AND l.reference = m.reference), 0),
       (SELECT pg_catalog.count(*) FROM moved)
  FROM m
  LEFT JOIN posted ON posted.shard = m.shard AND posted.workspace = m.workspace AND posted.wallet = m.wallet AND posted.reference = m.reference
  LEFT JOIN fits ON fits.shard = m.shard AND fits.workspace = m.workspace AND fits.wallet = m.wallet
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.id = m.wallet
