-- The functions look for what they call in pg_catalog alone: what others define in the session's search_path is not called.
-- min_reader: 19
ALTER FUNCTION {schema}.merge_patch(jsonb, jsonb) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.json_size(jsonb) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.scope_edit(jsonb, text, text, text, jsonb) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.scope_edits(bigint, boolean, jsonb, bigint[], text[], text[], text[], jsonb[], bigint[]) SET search_path = pg_catalog, pg_temp;
