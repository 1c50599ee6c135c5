-- The time when an added step is due: at once, if the signal or approval that it waits for exists.
CASE WHEN EXISTS (SELECT 1 FROM holdfast_signal AS g
                          WHERE g.shard = :shard AND g.workspace = :workspace AND g.run = :run AND g.type = x.value ->> 'signal' AND g.taken IS NULL
                            AND g.id <> coalesce(:plan ->> '$.signal', '')) THEN r.updated_at
            ELSE coalesce(x.value ->> 'at', r.updated_at + (x.value ->> 'due')) END
