-- Checks one page of wallets. Returns those whose balance differs from the sum of their ledger, or whose
-- ledger has a gap or an item of a batch that another wallet pays for; and the last wallet of the page.
{include check/page j.id, '', j.balance, j.events, j.last; c.id;
    c.events <> c.version OR c.last <> c.balance OR c.strange;
    SELECT x.shard, x.workspace, x.id, x.version, x.balance,
           (SELECT count(*) FROM holdfast_ledger AS l
             WHERE l.shard = x.shard AND l.workspace = x.workspace AND l.wallet = x.id) AS events,
           (SELECT coalesce(sum(l.delta), 0) FROM holdfast_ledger AS l
             WHERE l.shard = x.shard AND l.workspace = x.workspace AND l.wallet = x.id) AS last,
           EXISTS (SELECT 1 FROM holdfast_ledger AS l
                    WHERE l.shard = x.shard AND l.workspace = x.workspace AND l.wallet = x.id AND l.reference >= '$batch/' AND l.reference < '$batch0'
                      AND (SELECT b.wallet FROM holdfast_batch AS b
                            WHERE b.shard = l.shard AND b.workspace = l.workspace
                              AND b.id = substr(l.reference, 8, instr(substr(l.reference, 8), '/') - 1)) <> l.wallet) AS strange
      FROM holdfast_wallet AS x
     WHERE (x.shard, x.workspace, x.id) > (:shard, :workspace, :wallet)
     ORDER BY x.shard, x.workspace, x.id}
