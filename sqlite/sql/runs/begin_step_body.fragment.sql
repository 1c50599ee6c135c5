-- Inserts the effect for the body of the opaque step that begins, at the time {1}.
INSERT INTO holdfast_effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT :shard, :workspace, :run || '/' || :begin || '/' || :begin_visit, '$body', 0, 1, 'begun', :policy, {1}
 WHERE :policy IS NOT NULL
