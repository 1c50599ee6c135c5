-- True if the caller knows the registered definition of the reaction, and serves handlers of its kind.
EXISTS (SELECT 1 FROM holdfast_reaction AS r
                                       WHERE r.shard = d.shard AND r.workspace = d.workspace AND r.name = d.reaction AND r.state <> 'removed'
                                         AND (q.value ->> 2 IS NULL OR (r.events = q.value -> 2 AND r.streams = q.value ->> 3))
                                         AND (q.value ->> 5 IS NULL
                                              OR (r.options ->> 'handler' = q.value ->> 5
                                                  AND EXISTS (SELECT 1 FROM holdfast_handler AS h
                                                               WHERE h.shard = d.shard AND h.workspace = d.workspace AND h.name = q.value ->> 5
                                                                 AND h.kind = q.value ->> 6))))
