-- What the ids of tasks are signed with.
SELECT lower(hex(s.value)) FROM holdfast_secret AS s WHERE s.one = 1
