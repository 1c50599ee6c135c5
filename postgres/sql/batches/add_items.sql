-- Adds items to a batch that is not sealed, not being cancelled and not finished. Items
-- that the batch already has are skipped; an item whose cost or input differs from the
-- stored one refuses the whole list. A statement that waited for the batch does not see
-- items added meanwhile: the version differs, and the caller retries.
-- :items a JSON list of [key, cost, input]
WITH {members}, {include store/time}, cur AS MATERIALIZED (
    SELECT m.member, m.items AS page, b.shard, b.workspace, b.id, b.status, b.sealed, b.cancel_requested, b.items, b.version
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       FOR UPDATE OF b
), seen AS (
    SELECT m.member, b.version
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
), page AS MATERIALIZED (
    SELECT cur.member, x.item ->> 0 AS key, (x.item ->> 1)::bigint AS cost, x.item -> 2 AS input, x.n, i.key IS NOT NULL AS there,
           i.key IS NOT NULL AND (i.cost <> (x.item ->> 1)::bigint OR i.input::text <> (x.item -> 2)::text) AS other
      FROM cur CROSS JOIN LATERAL pg_catalog.json_array_elements(cur.page::json) WITH ORDINALITY AS x(item, n)
      LEFT JOIN LATERAL ( -- LIMIT makes this a lookup by key, even in a plan that was made when the table was almost empty
          SELECT i.key, i.cost, i.input FROM {schema}.item i
           WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.id AND i.key = x.item ->> 0
           LIMIT 1
      ) i ON true
), fits AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.id, cur.items, cur.version,
           CASE WHEN cur.version <> seen.version THEN 'stale'
                WHEN cur.sealed OR cur.cancel_requested OR cur.status IN ('CANCELLED', 'COMPLETED') THEN 'closed'
                WHEN EXISTS (SELECT 1 FROM page WHERE page.member = cur.member AND page.other) THEN 'other'
                ELSE 'open' END AS found,
           (SELECT pg_catalog.count(*) FROM page WHERE page.member = cur.member AND NOT page.there) AS more
      FROM cur JOIN seen ON seen.member = cur.member
), added AS (
    INSERT INTO {schema}.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
    SELECT fits.shard, fits.workspace, fits.id, page.key, fits.items + pg_catalog.row_number() OVER (PARTITION BY fits.member ORDER BY page.n), page.cost, 0,
           'pending', page.input, 0, 0, 0, 0, false, t.now
      FROM t, fits JOIN page ON page.member = fits.member AND NOT page.there
     WHERE fits.found = 'open'
), moved AS (
    UPDATE {schema}.batch b
       SET items = fits.items + fits.more, version = fits.version + 1, updated_at = t.now
      FROM t, fits
     WHERE b.shard = ANY (ARRAY[fits.shard]) AND b.workspace = fits.workspace AND b.id = fits.id AND fits.found = 'open' AND fits.more > 0
    RETURNING fits.member, b.items, b.version, b.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'itemsAdded',
           pg_catalog.json_build_object('added', fits.more, 'items', moved.items), moved.updated_at
      FROM m JOIN moved ON moved.member = m.member JOIN fits ON fits.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 WHEN fits.found = 'stale' THEN 2 ELSE 0 END,
       coalesce(fits.found, 'missing'), coalesce(fits.more, 0),
       coalesce((SELECT page.key FROM page WHERE page.member = m.member AND page.other ORDER BY page.n LIMIT 1), '')
  FROM m LEFT JOIN fits ON fits.member = m.member
  LEFT JOIN moved ON moved.member = m.member
