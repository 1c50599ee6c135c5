-- Deletes, of the streams on a page of the history, what is older than it has to
-- be, from the beginning: not the last event of a thing that is there, nor what a reaction has
-- still to handle. The page goes by ids, which are of the nodes' clocks; what is
-- old is told by the database's. A function of the owner's does, because nobody else may. Answers a row for each.
-- $1 shard, $2 workspace, not looked at: all are read in order, $3 after, $4 up to,
-- both ids as text, $5 limit, $6 how long it is kept, in ms
SELECT 1 FROM {schema}.prune_history($1::smallint, $2::text, $3::text, $4::text, $5::bigint, $6::bigint)
