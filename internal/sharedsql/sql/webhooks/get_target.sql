-- Returns the URL of a webhook, its headers, and the sealed secrets that currently sign its messages, or references to
-- secrets.
SELECT w.url, w.headers, w.secret, coalesce(CASE WHEN w.former_until > {now} THEN w.former END, '')
  FROM {schema}.webhook AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id AND w.removed_at IS NULL
