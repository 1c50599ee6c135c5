package postgres_test

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// hostilePath puts definitions of others before PostgreSQL's: a function that is called without its
// schema is theirs. An operator is theirs if its operands do not match the types of one of
// PostgreSQL's exactly.
const hostilePath = "public,pg_catalog"

// plantSQL creates an operator of every name in {operators} in public, for every two types, unless
// PostgreSQL has exactly that one; and a copy of every function, aggregate and catalog of
// PostgreSQL's by a name in {names}. The functions fail when they are called. They are written into
// the catalogs, because creating them one by one takes minutes.
const plantSQL = `SET LOCAL search_path = pg_catalog; SET LOCAL allow_system_table_mods = on;
CREATE FUNCTION public.hostile() RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''hostile''; END';
WITH types AS (
    SELECT t.oid FROM pg_type t
     WHERE t.typtype = 'p' AND t.typname LIKE 'any%' AND t.typname <> 'any' OR t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd')
        OR t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b' AND (t.typcategory IN ('B', 'D', 'N', 'S', 'T') OR t.typname IN ('char', 'bytea', 'json', 'jsonb', 'tid', 'uuid', 'xid', 'xid8'))
        OR t.typname IN ('record', 'int2vector', 'oidvector')
     UNION ALL
    SELECT t.typarray FROM pg_type t
     WHERE t.typname IN ('int2', 'int8', 'text', 'jsonb', 'uuid', 'oid')
), wanted AS (
    SELECT n.name, l.oid AS l, r.oid AS r FROM unnest({operators}) AS n(name), (SELECT oid FROM types UNION ALL SELECT 0) AS l, types AS r
)
INSERT INTO pg_operator (oid, oprname, oprnamespace, oprowner, oprkind, oprcanmerge, oprcanhash, oprleft, oprright, oprresult, oprcom, oprnegate, oprcode, oprrest, oprjoin)
SELECT 2000000 + row_number() OVER (), w.name, 'public'::regnamespace, 10, CASE WHEN w.l = 0 THEN 'l' ELSE 'b' END, false, false, w.l, w.r,
       CASE WHEN w.name ~ '^([<>=]+|[?]|!?~+[*]?)$' THEN 16 WHEN w.l = 0 THEN w.r ELSE w.l END, 0, 0, 'public.hostile'::regproc, 0, 0
  FROM wanted w
 WHERE NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprname = w.name AND o.oprleft = w.l AND o.oprright = w.r);
CREATE TEMP TABLE copied ON COMMIT DROP AS SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY ({names});
INSERT INTO pg_proc
SELECT q.* FROM copied JOIN pg_proc p USING (oid) CROSS JOIN LATERAL jsonb_populate_record(p, jsonb_build_object('oid', p.oid::bigint + 1000000, 'pronamespace', 'public'::regnamespace::oid::bigint)
       || CASE WHEN p.prokind <> 'f' THEN '{}' ELSE jsonb_build_object('prosupport', 0, 'probin', NULL, 'prosqlbody', NULL, 'prosrc', 'BEGIN RAISE EXCEPTION ''hostile''; END',
                  'prolang', (SELECT l.oid::bigint FROM pg_language l WHERE l.lanname = 'plpgsql')) END) AS q;
INSERT INTO pg_aggregate
SELECT q.* FROM copied JOIN pg_aggregate a ON a.aggfnoid = copied.oid CROSS JOIN LATERAL jsonb_populate_record(a, jsonb_build_object('aggfnoid', copied.oid::bigint + 1000000)) AS q;
DO $$ BEGIN
    EXECUTE (SELECT string_agg(format('CREATE VIEW public.%I AS SELECT * FROM pg_catalog.%I;', c.relname, c.relname), '')
               FROM pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname = ANY ({names}));
END $$;`

// watchSQL makes a migration fail that does not set its own search_path: what it writes into the
// schema would keep the wrong references.
const watchSQL = `CREATE FUNCTION public.watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>) 'pg_catalog, pg_temp' THEN RAISE EXCEPTION 'the search_path is %', pg_catalog.current_setting('search_path'); END IF;
END $$`

var (
	quotedText    = regexp.MustCompile(`--.*|'[^']*'`)
	operatorNames = regexp.MustCompile("[-+*/<>=~!@#%^&|`?]+")
	names         = regexp.MustCompile(`\w+`)
)

// plant creates everything that the texts may call, and fails if that is not much.
func plant(t *testing.T, conn *pgx.Conn, texts []string) {
	t.Helper()
	operators := strings.Fields("= <> < <= > >= ~~") // used by IN, BETWEEN, CASE, LIKE and rows
	var called []string
	for _, text := range texts {
		text = quotedText.ReplaceAllString(text, "''")
		operators = append(operators, operatorNames.FindAllString(text, -1)...)
		called = append(called, names.FindAllString(text, -1)...)
	}
	list := func(names []string) string {
		slices.Sort(names)
		return "ARRAY['" + strings.Join(slices.Compact(names), "', '") + "']::text[]"
	}
	sql := strings.NewReplacer("{operators}", list(operators), "{names}", list(called)).Replace(plantSQL)
	if _, err := conn.PgConn().Exec(t.Context(), "BEGIN;"+sql+"COMMIT").ReadAll(); err != nil {
		t.Fatal(err)
	}
	n := query[[]int](t, conn, `SELECT pg_catalog.array_agg(x.n) FROM (SELECT pg_catalog.count(DISTINCT oprname) AS n FROM pg_catalog.pg_operator WHERE oprnamespace = 'public'::regnamespace
		UNION ALL SELECT pg_catalog.count(DISTINCT proname) FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT pg_catalog.count(*) FROM pg_catalog.pg_views WHERE schemaname = 'public') x`)
	if n[0] < 15 || n[1] < 50 || n[2] < 10 {
		t.Fatalf("planted operators of %d names, functions of %d and %d views, which is too few", n[0], n[1], n[2])
	}
}

// literals returns the strings in the Go files of this package.
func literals(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
			return true
		})
	}
	return all
}

// parts are the strings that are only the beginning of a statement, with the place where the whole
// statement is checked.
var parts = map[string]string{
	"SELECT ":              "a table of the user's own",
	"UPDATE ":              "a table of the user's own",
	"SELECT movable FROM ": "it calls nothing",
	"SELECT pg_catalog.pg_advisory_xact_lock_shared(%d)": "a number",
	"SELECT ON ": "the name of a privilege",
	"UPDATE ON ": "the name of a privilege",
	"INSERT INTO {schema}.migration (number, name, min_reader, sum, applied_at)\nVALUES (%d, '%s', %d, '%s', pg_catalog.clock_timestamp())": "a migration",
}

// inGo returns the statements in Go files.
func inGo(t *testing.T) store.Texts {
	t.Helper()
	all, statement := store.Texts{}, regexp.MustCompile(`^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\s`)
	for i, text := range literals(t) {
		if statement.MatchString(text) && parts[text] == "" {
			all["in Go "+strconv.Itoa(i)] = strings.ReplaceAll(text, "{schema}", "holdfast")
		}
	}
	if len(all) < 10 {
		t.Fatalf("found only %d statements in the Go files", len(all))
	}
	return all
}

// ownTables creates tables of the user's own, with columns of every kind.
func ownTables(t *testing.T, conn *pgx.Conn) (all []store.Table) {
	t.Helper()
	execute(t, conn, `CREATE TYPE public.kind AS ENUM ('1', 'a')`, `CREATE DOMAIN public.short AS varchar(9)`)
	for i, id := range []string{"smallint", "integer", "bigint", "numeric", "uuid", "text", "varchar(9)", "char(1)", "name", "public.kind", "public.short"} {
		own := orders
		own.Name, own.Workspace = "public.own"+strconv.Itoa(i), "tenant"
		status, version := "text", "bigint"
		if i%2 == 1 {
			status, version = id, "smallint"
		}
		execute(t, conn, `CREATE TABLE `+own.Name+` (tenant `+id+`, id `+id+` UNIQUE, status `+status+`, version `+version+`, total `+id+`, PRIMARY KEY (tenant, id))`)
		own.Write = []string{"total"}
		all = append(all, own)
		own.Workspace = ""
		all = append(all, own)
	}
	return all
}

// TestNothingThatOthersDefineIsCalled verifies that a database in which others have defined all of
// that is migrated, opened and used without calling any of it, through a pool of the program, whose
// sessions have the program's search_path; and that no statement would call any: in none of its
// forms, not on a table of the user's own, and not in a Go file.
func TestNothingThatOthersDefineIsCalled(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	url := fresh(t)
	clean, hostile := connect(t, as(t, url, "", "", "search_path=pg_catalog")), as(t, url, "", "", "search_path="+hostilePath)
	tables, texts := ownTables(t, clean), statements(t)
	maps.Copy(texts, inGo(t))
	script, err := store.DatabaseOf(postgres.URL(url)).Script(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plant(t, clean, slices.Concat(literals(t), slices.Collect(maps.Values(texts)), []string{script}))

	pool, err := pgxpool.New(t.Context(), hostile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	execute(t, clean, watchSQL, `CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION public.watch()`)
	hf, conn := openEngine(t, postgres.Pool(pool)), connect(t, hostile)
	execute(t, clean, `DROP EVENT TRIGGER watch`)
	for i, own := range tables {
		for name, text := range openTable(t, hf, own).(interface{ Texts() store.Texts }).Texts() {
			texts[own.Name+" "+strconv.Itoa(i)+" "+name] = text
		}
	}
	useAll(t, hf, conn)
	useFunctions(t, conn)
	if n := query[int](t, clean, `SELECT count(*) FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace AND proconfig IS NULL`); n > 0 {
		t.Errorf("%d functions of the schema run under the session's search_path: SET search_path = pg_catalog, pg_temp", n)
	}
	probes := resolve(t, clean, conn, texts)

	rows, err := clean.Query(t.Context(), `SELECT DISTINCT CASE WHEN d.classid = 'pg_proc'::regclass THEN (SELECT p.proname::text FROM pg_proc p WHERE p.oid = d.objid)
	            ELSE pg_describe_object(d.classid, d.objid, d.objsubid) END, pg_describe_object(d.refclassid, d.refobjid, 0)
	  FROM pg_depend d
	 WHERE d.refclassid = 'pg_operator'::regclass AND d.refobjid IN (SELECT oid FROM pg_operator WHERE oprnamespace = 'public'::regnamespace)
	    OR d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_proc'::regclass AND d.refobjid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'v')
	    OR d.refclassid = 'pg_proc'::regclass AND d.refobjid IN (SELECT oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace)
	 ORDER BY 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	var what, calls string
	if _, err := pgx.ForEachRow(rows, []any{&what, &calls}, func() error {
		t.Errorf("%s calls %s: write pg_catalog.f(…), and give operators the types that PostgreSQL's have (docs/decisions/031)", cmp.Or(probes[what], what), calls)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// useAll uses the engine on its own and in a transaction of the user's.
func useAll(t *testing.T, hf *holdfast.Engine, conn *pgx.Conn) {
	t.Helper()
	if err := useEverything(t.Context(), hf, "alone"); err != nil {
		t.Error(err, errors.Unwrap(err))
	}
	tx, j := begin(t, hf, conn)
	if err := useEverything(t.Context(), j, "joined"); err != nil {
		t.Error(err, errors.Unwrap(err))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := hf.Check(t.Context()); err != nil {
		t.Error(err, errors.Unwrap(err))
	}
}

// useFunctions calls the functions of the schema, whose bodies are resolved when they run.
func useFunctions(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for call, want := range map[string]string{
		`scope_edit('{"n": 1}', 'inc', 'n', NULL, '2')`:                                `{"n": 3}`,
		`scope_edit('{"n": {"a": {"b": 1}}}', 'patch', '', '', '{"n":{"a":{"c":2}}}')`: `{"n": {"a": {"b": 1, "c": 2}}}`,
		`scope_edit('{"n": [1]}', 'push', 'n', NULL, '2')`:                             `{"n": [1, 2]}`,
		`scope_edit('{}', 'set', 'n', 'a', '2')`:                                       `{"n": {"a": 2}}`,
		`scope_edit('{"n": {"a": 2}}', 'unset', 'n', 'a', NULL)`:                       `{"n": {}}`,
		`merge_patch('{"n": 1}', '{"n": null}')`:                                       `{}`,
		`json_size('{"a": [1, 2]}')`:                                                   `11`,
	} {
		var got string
		if err := conn.QueryRow(t.Context(), `SELECT holdfast.`+call+`::text`).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %s, want %s (%v)", call, got, want, err)
		}
	}
}

// resolve creates a function from every statement; its dependencies show what the statement calls.
// It returns the names of the statements by those of the functions.
func resolve(t *testing.T, clean, conn *pgx.Conn, texts store.Texts) map[string]string {
	t.Helper()
	probes := map[string]string{}
	for name, text := range texts {
		probe := "probe" + strconv.Itoa(len(probes))
		probes[probe] = name
		want, err := clean.Prepare(t.Context(), probe, text)
		if err != nil {
			t.Errorf("%s: %v: complete it, or list in parts where it is checked", name, err)
			continue
		}
		if !strings.HasPrefix(name, "in Go ") && slices.Contains(want.ParamOIDs, pgtype.Int4OID) {
			t.Errorf("%s has a 32-bit parameter, but all numbers are sent as 64 bits: cast it to bigint at each place", name)
		}
		got, err := conn.Prepare(t.Context(), probe, text) // the called function determines the types of parameters
		if err != nil || !slices.Equal(got.ParamOIDs, want.ParamOIDs) {
			t.Errorf("%s resolves to planted objects: got parameters %v, want %v (%v)", name, got, want.ParamOIDs, err)
			continue
		}
		params := query[string](t, clean, `SELECT coalesce(string_agg(format_type(p, NULL), ', ' ORDER BY n), '') FROM unnest($1::oid[]) WITH ORDINALITY AS u(p, n)`, want.ParamOIDs)
		execute(t, conn, `CREATE FUNCTION holdfast.`+probe+`(`+params+`) RETURNS void LANGUAGE sql BEGIN ATOMIC `+text+"\n; END")
	}
	return probes
}

// TestSearchPaths verifies that internal connections find only what PostgreSQL defines, and that
// those of the pool have the program's search_path.
func TestSearchPaths(t *testing.T) {
	t.Parallel()
	url := as(t, prepared(t), "", "", "search_path=mine")
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, db := range []*postgres.Database{postgres.URL(url), postgres.Pool(pool)} {
		for name, p := range postgres.Pools(engine.Of(openEngine(t, db)).Runner().Base()) {
			want := map[string]string{"pool": "mine", "quick": "pg_catalog, pg_temp", "vital": "pg_catalog, pg_temp"}[name]
			var got string
			if err := p.QueryRow(t.Context(), `SHOW search_path`).Scan(&got); err != nil || got != want {
				t.Errorf("search_path of %s: got %q, want %q (%v)", name, got, want, err)
			}
		}
	}
}
