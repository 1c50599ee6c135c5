-- The state after the edit; NULL if the edit is not possible.
CASE :op
                      WHEN 'inc' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, CAST(:value AS INTEGER))
                                           WHEN b.type = 'integer' AND typeof(b.old ->> b.path) = 'integer'
                                            AND typeof((b.old ->> b.path) + CAST(:value AS INTEGER)) = 'integer'
                                           THEN json_set(b.old, b.path, (b.old ->> b.path) + CAST(:value AS INTEGER)) END
                      WHEN 'patch' THEN json_patch(b.old, :value)
                      WHEN 'push' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, json_array(json(:value)))
                                            WHEN b.type = 'array' THEN json_set(b.old, b.path || '[#]', json(:value)) END
                      WHEN 'set' THEN CASE WHEN b.type IS NULL THEN json_set(b.old, b.path, json_object(:key, json(:value)))
                                           WHEN b.type = 'object' THEN json_set(b.old, b.path || '.' || json_quote(:key), json(:value)) END
                      WHEN 'unset' THEN CASE WHEN b.type IS NULL THEN b.old
                                             WHEN b.type = 'object' THEN json_remove(b.old, b.path || '.' || json_quote(:key)) END
                      END AS state
