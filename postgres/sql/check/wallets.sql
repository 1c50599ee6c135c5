-- Checks one page of wallets. Returns those whose balance differs from the sum of their ledger, or whose
-- ledger has a gap or an item of a batch that another wallet pays for; and the last wallet of the page.
{include check/page j.id, '', j.balance, j.events, j.last; c.id;
    c.events <> c.version OR c.last <> c.balance OR c.strange;
    SELECT x.shard, x.workspace, x.id, x.version, x.balance, s.events, s.last,
           coalesce((SELECT true FROM {schema}.ledger l
                      WHERE l.shard + 0 = x.shard AND l.workspace = x.workspace AND l.wallet = x.id AND l.reference >= '$batch/' AND l.reference < '$batch0'
                        AND (SELECT b.wallet FROM {schema}.batch b
                              WHERE b.shard = l.shard AND b.workspace = l.workspace AND b.id = pg_catalog.split_part(l.reference, '/', 2)) <> l.wallet
                      ORDER BY l.reference
                      LIMIT 1), false) AS strange
      FROM {schema}.wallet x
     CROSS JOIN LATERAL (
            SELECT pg_catalog.count(*) AS events, coalesce(pg_catalog.sum(l.delta), 0)::bigint AS last
              FROM (SELECT l.delta FROM {schema}.ledger l
                     WHERE l.shard = x.shard AND l.workspace = x.workspace AND l.wallet = x.id
                     ORDER BY l.n) AS l) AS s -- the order makes the planner use the key
     WHERE (x.shard, x.workspace, x.id) > (:shard, :workspace, :wallet)
     ORDER BY x.shard, x.workspace, x.id}
