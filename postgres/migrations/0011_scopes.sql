-- Scopes that end by themselves, and edits that are made where the state is.
-- min_reader: 11

-- expires_at is when a scope ends, or when a tombstone may go. born is the version that
-- the row began with: a name whose tombstone is gone begins above every version that was
-- ever used in its kind.
ALTER TABLE {schema}.scope
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN born bigint NOT NULL DEFAULT 0;
UPDATE {schema}.scope SET expires_at = clock_timestamp() + interval '1 day' WHERE state IS NULL;
CREATE INDEX scope_expires ON {schema}.scope (shard, expires_at) WHERE expires_at IS NOT NULL;

-- The version that the next new scope of a kind begins with.
CREATE TABLE {schema}.scope_floor (
    shard      smallint NOT NULL,
    workspace  text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    PRIMARY KEY (shard, workspace, kind)
);

-- A merge patch (RFC 7396). Members are put together at once: one after the other, each
-- would copy all.
CREATE FUNCTION {schema}.merge_patch(target jsonb, patch jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF jsonb_typeof(patch) <> 'object' THEN
        RETURN patch;
    END IF;
    IF target IS NULL OR jsonb_typeof(target) <> 'object' THEN
        target := '{}';
    END IF;
    RETURN coalesce((
        SELECT jsonb_object_agg(coalesce(p.key, t.key),
                   CASE WHEN p.key IS NULL THEN t.value
                        WHEN jsonb_typeof(p.value) = 'object' THEN {schema}.merge_patch(t.value, p.value)
                        ELSE p.value END)
          FROM jsonb_each(target) AS t FULL JOIN jsonb_each(patch) AS p ON p.key = t.key
         WHERE p.key IS NULL OR jsonb_typeof(p.value) <> 'null'), '{}');
END $$;

-- How long a document is without the spaces that PostgreSQL writes.
CREATE FUNCTION {schema}.json_size(doc jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT octet_length(doc::text) - coalesce((
        SELECT sum(CASE jsonb_typeof(v.item)
                   WHEN 'array' THEN greatest(jsonb_array_length(v.item) - 1, 0)
                   WHEN 'object' THEN greatest(2 * (SELECT count(*) FROM jsonb_object_keys(v.item)) - 1, 0)
                   ELSE 0 END)
          FROM jsonb_path_query(doc, 'strict $.**') AS v(item)), 0)
$$;

-- The state of a scope after an edit, or NULL if the edit is refused: the field is of
-- another kind, the sum would not fit 64 bits, or the state would be too large. A field that
-- is null is as one that is missing. What makes a state smaller is never refused.
CREATE FUNCTION {schema}.scope_edit(state jsonb, op text, field text, name text, item jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    old  jsonb := nullif(state -> field, 'null');
    sum  numeric;
    made jsonb;
BEGIN
    CASE op
    WHEN 'inc' THEN
        IF old IS NULL THEN
            made := state || jsonb_build_object(field, item);
        ELSIF jsonb_typeof(old) <> 'number' OR old #>> '{}' !~ '^-?[0-9]{1,19}$' THEN
            RETURN NULL;
        ELSE
            sum := (old #>> '{}')::numeric;
            IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
                RETURN NULL;
            END IF;
            sum := sum + (item #>> '{}')::numeric;
            IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
                RETURN NULL;
            END IF;
            made := state || jsonb_build_object(field, sum);
        END IF;
    WHEN 'patch' THEN
        made := {schema}.merge_patch(state, item);
    WHEN 'push' THEN
        IF old IS NULL THEN
            made := state || jsonb_build_object(field, jsonb_build_array(item));
        ELSIF jsonb_typeof(old) <> 'array' THEN
            RETURN NULL;
        ELSE
            made := state || jsonb_build_object(field, old || jsonb_build_array(item));
        END IF;
    WHEN 'set' THEN
        IF old IS NOT NULL AND jsonb_typeof(old) <> 'object' THEN
            RETURN NULL;
        END IF;
        made := state || jsonb_build_object(field, coalesce(old, '{}') || jsonb_build_object(name, item));
    WHEN 'unset' THEN
        IF old IS NULL THEN
            RETURN state;
        ELSIF jsonb_typeof(old) <> 'object' THEN
            RETURN NULL;
        END IF;
        made := state || jsonb_build_object(field, old - name);
    END CASE;
    IF octet_length(made::text) > 1048576 AND {schema}.json_size(made) > 1048576 AND {schema}.json_size(made) >= {schema}.json_size(state) THEN
        RETURN NULL;
    END IF;
    RETURN made;
END $$;

-- Several edits of one scope, one after the other, each on the state that the one before
-- it left. A verdict: 0 refused, 1 changed, 2 changed nothing, 3 not at the wanted version.
CREATE FUNCTION {schema}.scope_edits(version bigint, alive boolean, state jsonb,
    members bigint[], ops text[], fields text[], names text[], items jsonb[], wants bigint[])
RETURNS TABLE (made_member bigint, made_version bigint, made_alive boolean, made_state jsonb, made_verdict bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 64 AS $$
DECLARE
    made jsonb;
BEGIN
    FOR i IN 1 .. array_length(members, 1) LOOP
        IF wants[i] IS NOT NULL AND wants[i] <> (CASE WHEN alive THEN version ELSE -1 END) AND NOT (wants[i] = -2 AND alive) THEN
            made_verdict := 3;
        ELSE
            made := {schema}.scope_edit(state, ops[i], fields[i], names[i], items[i]);
            IF made IS NULL THEN
                made_verdict := 0;
            ELSIF (alive OR ops[i] = 'unset') AND made = state THEN
                made_verdict := 2;
            ELSE
                made_verdict := 1;
                version := version + 1;
                alive := true;
                state := made;
            END IF;
        END IF;
        made_member := members[i];
        made_version := version;
        made_alive := alive;
        made_state := state;
        RETURN NEXT;
    END LOOP;
END $$;
