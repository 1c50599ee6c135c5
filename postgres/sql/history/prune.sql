-- Deletes, of the streams on a page of the history, what is older than it has to
-- be, from the beginning: not the last event of a thing that is there, nor what a reaction has
-- still to handle. The page goes by ids, which are of the nodes' clocks; what is
-- old is told by the database's. A function of the owner's does, because nobody else may. Answers a row for each.
-- both ids are text; :keep how long it is kept, in ms
SELECT 1 FROM {schema}.prune_history(:shard, :workspace, :after, :upto, :limit, :keep)
