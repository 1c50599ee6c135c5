-- The data of the event of an increment of field {1} by {2} to {3}.
('{"field":' || pg_catalog.to_json({1})::text || ',"by":' || {2}::text || ',"value":' || {3}::text || '}')::json
