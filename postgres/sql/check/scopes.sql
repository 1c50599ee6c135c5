-- Checks one page of scopes. Returns those whose version differs from their last event, or whose
-- history has a gap above its first retained version since the row was created; and the last scope of the page.
{include check/page j.kind, j.id, j.version, j.events, j.last, j.low, ''; c.kind, c.id;
    c.events <> c.version - c.low + 1 OR c.last <> c.version;
    SELECT x.shard, x.workspace, x.kind, x.id, x.version,
           h.events, h.last, h.low
      FROM {schema}.scope x
     CROSS JOIN LATERAL (
            SELECT pg_catalog.count(*) FILTER (WHERE e.version >= x.born) AS events, coalesce(pg_catalog.max(e.version), -1) AS last,
                   coalesce(pg_catalog.min(e.version) FILTER (WHERE e.version >= x.born), x.born) AS low
              FROM (SELECT h.version FROM {schema}.history h
                     WHERE h.shard = x.shard AND h.workspace = x.workspace AND h.stream = '$scope/' || x.kind || '/' || x.id
                     ORDER BY h.version) AS e) AS h
     WHERE (x.shard, x.workspace, x.kind, x.id) > (:shard, :workspace, :kind, :scope)
     ORDER BY x.shard, x.workspace, x.kind, x.id}
