-- There is one writer, so no reaction waits for anybody: all is as if it were over.
SELECT 0, '["prepared"]' FROM holdfast_reaction AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state <> 'live'
