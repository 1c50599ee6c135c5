-- Checks one page of entities. Returns those whose version differs from their last event,
-- or whose history has a gap above its first retained version; and the last entity of the page.
{include check/page j.lifecycle, j.id, j.version, j.events, j.last, j.low, ''; c.lifecycle, c.id;
    c.events <> c.version - c.low + 1 OR c.last <> c.version;
    SELECT x.shard, x.workspace, x.lifecycle, x.id, x.version,
           h.events, h.last, h.low
      FROM {schema}.entity x
     CROSS JOIN LATERAL (
            SELECT pg_catalog.count(*) AS events, coalesce(pg_catalog.max(e.version), -1) AS last, coalesce(pg_catalog.min(e.version), 0) AS low
              FROM (SELECT h.version FROM {schema}.history h
                     WHERE h.shard = x.shard AND h.workspace = x.workspace AND h.stream = '$entity/' || x.lifecycle || '/' || x.id
                     ORDER BY h.version) AS e) AS h
     WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (:shard, :workspace, :lifecycle, :entity)
     ORDER BY x.shard, x.workspace, x.lifecycle, x.id}
