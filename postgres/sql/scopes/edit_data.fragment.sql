-- The data of the event of an edit: operation {1} with field {2}, key {3} and value {4}; {5} is the sum of an inc, and {6} a first
-- member or ''. It has what the operation was given, so that the state at the version of the event can be computed.
(CASE {1} WHEN 'patch' THEN '{' || {6} || '"patch":' || {4} || '}'
                  WHEN 'inc' THEN '{' || {6} || '"field":' || pg_catalog.to_json({2})::text || ',"by":' || {4} || ',"value":' || ({5})::text || '}'
                  WHEN 'push' THEN '{' || {6} || '"field":' || pg_catalog.to_json({2})::text || ',"value":' || {4} || '}'
                  WHEN 'set' THEN '{' || {6} || '"field":' || pg_catalog.to_json({2})::text || ',"key":' || pg_catalog.to_json({3})::text || ',"value":' || {4} || '}'
                  ELSE '{' || {6} || '"field":' || pg_catalog.to_json({2})::text || ',"key":' || pg_catalog.to_json({3})::text || '}' END)::json
