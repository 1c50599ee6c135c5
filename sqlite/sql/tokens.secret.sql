-- What the ids of tasks are signed with.
-- ?1 shard, ?2 workspace, both not looked at
-- do
SELECT lower(hex(s.value)) FROM holdfast_secret AS s WHERE s.one = 1
