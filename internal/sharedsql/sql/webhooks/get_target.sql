-- Returns the URL of a webhook, and the sealed secrets that currently sign its messages.
SELECT w.url, w.secret, coalesce(CASE WHEN w.former_until > {now} THEN w.former END, '')
  FROM {schema}.webhook AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id AND w.removed_at IS NULL
