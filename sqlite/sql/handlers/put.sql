-- Declares a handler or replaces its declaration, which retains its secret unless a new one is given.
-- do
UPDATE holdfast_handler AS h
   SET kind = :kind, url = :url, safety = :safety, unknown = :unknown, timeout = :timeout, secret = CASE WHEN :secret = '' THEN h.secret ELSE :secret END, headers = :headers,
       updated_at = {now}
 WHERE h.shard = :shard AND h.workspace = :workspace AND h.name = :name
RETURNING 0
-- else
INSERT INTO holdfast_handler (shard, workspace, name, kind, url, safety, unknown, timeout, secret, headers, created_at, updated_at)
VALUES (:shard, :workspace, :name, :kind, :url, :safety, :unknown, :timeout, :secret, :headers, {now}, {now})
RETURNING 1
