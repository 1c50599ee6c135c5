-- Deletes, of the streams on one page of the history, events past their retention, from the
-- beginning; but not the last event of an existing object or of a stream on which a reaction has a
-- position, and no event that a reaction has yet to handle. The page is bounded by ids, which come from the nodes' clocks; the age is
-- measured by the database's clock. A function of the schema's owner deletes the events, because the runtime role may not.
-- Returns one row for each event.
-- :after and :upto ids as text; :keep the retention in ms
SELECT 1 FROM {schema}.prune_history(:shard, :workspace, :after, :upto, :limit, :keep)
