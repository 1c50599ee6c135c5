-- Appends events to one existing stream, if its head is the expected one; otherwise
-- does nothing and returns nothing.
WITH moved AS (
    UPDATE {schema}.stream s
       SET head = s.head + :size
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
       AND (:want IS NULL OR s.head = :want) AND s.state = 'open'
       AND {include registry/is_current}
    RETURNING s.head, {now} AS at -- read after the lock
), written AS (
    INSERT INTO {schema}.event
        (shard, id, n, workspace, stream, version, name, data, subject, correlation, causation, actor, at)
    SELECT :shard, :command, c.n, :workspace, :stream, moved.head - :size + 1 + c.n,
           c.name, c.data::json, c.subject, c.correlation, c.causation, c.actor, moved.at
      FROM moved, {children}
)
SELECT moved.head, false, moved.at FROM moved
