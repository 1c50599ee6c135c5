-- Returns the secret that signs the ids of tasks.
SELECT lower(hex(s.value)) FROM holdfast_secret AS s WHERE s.one = 1
