-- Checks one page of entities. Returns those whose version differs from their last event,
-- or whose history has a gap above its first retained version; and the last entity of the page.
{include check/page j.lifecycle, j.id, j.version, j.events, j.last, j.low, ''; c.lifecycle, c.id;
    c.events <> c.version - c.low + 1 OR c.last <> c.version;
    SELECT x.shard, x.workspace, x.lifecycle, x.id, x.version,
           (SELECT count(*) FROM holdfast_history AS h
             WHERE h.shard = x.shard AND h.workspace = x.workspace
               AND h.stream = '$entity/' || x.lifecycle || '/' || x.id) AS events,
           (SELECT coalesce(max(h.version), -1) FROM holdfast_history AS h
             WHERE h.shard = x.shard AND h.workspace = x.workspace
               AND h.stream = '$entity/' || x.lifecycle || '/' || x.id) AS last,
           (SELECT coalesce(min(h.version), 0) FROM holdfast_history AS h
             WHERE h.shard = x.shard AND h.workspace = x.workspace
               AND h.stream = '$entity/' || x.lifecycle || '/' || x.id) AS low
      FROM holdfast_entity AS x
     WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (:shard, :workspace, :lifecycle, :entity)
     ORDER BY x.shard, x.workspace, x.lifecycle, x.id}
