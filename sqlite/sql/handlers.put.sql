-- Declares a handler, or declares it anew: then its secret stays, unless another is
-- given.
-- ?1 shard, ?2 workspace, ?3 command, ?4 name, ?5 kind, ?6 url, ?7 safety, ?8 unknown, ?9 timeout in ms, ?10 secret ('' for the one it has)
-- do
UPDATE holdfast_handler AS h
   SET kind = ?5, url = ?6, safety = ?7, unknown = ?8, timeout = ?9, secret = CASE WHEN ?10 = '' THEN h.secret ELSE ?10 END, updated_at = {now}
 WHERE h.shard = ?1 AND h.workspace = ?2 AND h.name = ?4
RETURNING 0
-- else
INSERT INTO holdfast_handler (shard, workspace, name, kind, url, safety, unknown, timeout, secret, created_at, updated_at)
VALUES (?1, ?2, ?4, ?5, ?6, ?7, ?8, ?9, ?10, {now}, {now})
RETURNING 1
