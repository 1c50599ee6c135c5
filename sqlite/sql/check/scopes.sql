-- Checks one page of scopes. Returns those whose version differs from their last event, or whose
-- history has a gap above its first retained version since the row was created; and the last scope of the page.
{include check/page j.kind, j.id, j.version, j.events, j.last, j.low, ''; c.kind, c.id;
    c.events <> c.version - c.low + 1 OR c.last <> c.version;
    SELECT x.shard, x.workspace, x.kind, x.id, x.version,
           (SELECT count(*) FROM holdfast_history AS h
             WHERE h.shard = x.shard AND h.workspace = x.workspace
               AND h.stream = '$scope/' || x.kind || '/' || x.id AND h.version >= x.born) AS events,
           (SELECT coalesce(max(h.version), -1) FROM holdfast_history AS h
             WHERE h.shard = x.shard AND h.workspace = x.workspace
               AND h.stream = '$scope/' || x.kind || '/' || x.id) AS last,
           (SELECT coalesce(min(h.version), x.born) FROM holdfast_history AS h
             WHERE h.shard = x.shard AND h.workspace = x.workspace
               AND h.stream = '$scope/' || x.kind || '/' || x.id AND h.version >= x.born) AS low
      FROM holdfast_scope AS x
     WHERE (x.shard, x.workspace, x.kind, x.id) > (:shard, :workspace, :kind, :scope)
     ORDER BY x.shard, x.workspace, x.kind, x.id}
