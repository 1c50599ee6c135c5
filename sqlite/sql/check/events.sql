-- Finds events of a stream that has no row, one page of streams at a time, and returns the last stream of the page too.
{include check/headless event; <> '$void';
    NOT EXISTS (SELECT 1 FROM holdfast_stream AS s
                 WHERE s.shard = c.shard AND s.workspace = c.workspace AND s.name = c.stream)}
