package archtest

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-go/holdfast/internal/store"
	_ "github.com/holdfast-go/holdfast/internal/storetest/everyverb"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// texts returns the statements of the adapters.
func texts(t *testing.T) map[Dialect]store.Texts {
	t.Helper()
	lite, err := store.DatabaseOf(sqlite.File("")).Filled()
	if err != nil {
		t.Fatal(err)
	}
	pg, err := store.DatabaseOf(postgres.URL("")).Filled()
	if err != nil {
		t.Fatal(err)
	}
	return map[Dialect]store.Texts{SQLite: lite, Postgres: pg}
}

func TestSQL(t *testing.T) {
	testlevel.OneGoroutine(t)
	for d, texts := range texts(t) {
		report(t, SQL(d, texts), nil)
		if len(texts) < len(store.Decls())-1 { // one verb shares the statement of another
			t.Errorf("%s: got %d statements for %d verbs", d.folder(), len(texts), len(store.Decls()))
		}
	}
}

func TestMigrations(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := os.DirFS(moduleRoot(t))
	found, read, err := Migrations(dir)
	report(t, found, err)
	if want := len(glob(t, dir, "*/migrations/*.sql")); read != want || read == 0 {
		t.Errorf("read %d migrations, want %d", read, want)
	}
}

// docs/architecture.md lists every table with its key, and no other table.
func TestTheDocumentHasEveryTable(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := os.DirFS(moduleRoot(t))
	tables := map[string]string{"migration": "number"} // created by the adapters, not by a migration
	for d, folder := range map[Dialect]string{SQLite: "sqlite", Postgres: "postgres"} {
		s := &schema{d: d, tables: make(map[string]map[string]string)}
		for _, name := range glob(t, dir, folder+"/migrations/*.sql") {
			s.read(&sqlFile{d: d, name: name, src: readText(t, dir, name)})
		}
		for _, k := range s.keys {
			key := strings.Join(k.columns, ", ")
			if before, ok := tables[k.table]; k.kind == "PRIMARY KEY" && ok && before != key {
				t.Errorf("%s has primary key (%s) in one database and (%s) in the other", k.table, before, key)
			}
			if k.kind == "PRIMARY KEY" {
				tables[k.table] = key
			}
		}
	}
	_, section, _ := strings.Cut(readText(t, dir, "docs/architecture.md"), "\n## Tables\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(section, -1) {
		listed[row[1]] = row[2]
	}
	for table, key := range tables {
		if listed[table] != key {
			t.Errorf("docs/architecture.md lists %s with primary key (%s), want (%s)", table, listed[table], key)
		}
	}
	for table := range listed {
		if _, ok := tables[table]; !ok {
			t.Errorf("docs/architecture.md lists %s, which is not a table", table)
		}
	}
}

func readText(t *testing.T, dir fs.FS, name string) string {
	t.Helper()
	src, err := fs.ReadFile(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func TestSameVerbs(t *testing.T) {
	testlevel.OneGoroutine(t)
	all := texts(t)
	report(t, SameVerbs(all[SQLite], all[Postgres]), nil)
}

// SQL files have no positional arguments, not even in comments.
func TestSQLFilesUseNames(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := os.DirFS(moduleRoot(t))
	names := append(glob(t, dir, "*/sql/*/*.sql"), glob(t, dir, "internal/sharedsql/sql/*/*.sql")...)
	for _, name := range names {
		src, err := fs.ReadFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(src), "\n") {
			if position.MatchString(line) {
				t.Errorf("%s:%d has a positional argument: %s", name, n+1, line)
			}
		}
	}
	if len(names) < 200 {
		t.Errorf("got %d SQL files, want at least 200", len(names))
	}
	if !position.MatchString("x = $1") || !position.MatchString("?12") || position.MatchString("'$entity/' ? 'x'") {
		t.Error("the pattern does not recognize positional arguments")
	}
}

var position = regexp.MustCompile(`[$?]\d`)

// good has one correct statement for each dialect.
var good = map[Dialect]string{
	Postgres: `
-- Appends, one row a member.
WITH m AS (SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[])
           WITH ORDINALITY AS m(shard, workspace, id, stream, want, member)),
t AS MATERIALIZED (SELECT {now} AS now),
cur AS (
  SELECT s.shard, s.workspace, s.name, s.head
  FROM m JOIN {schema}.stream s ON s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream
  ORDER BY s.shard, s.workspace, s.name FOR UPDATE OF s SKIP LOCKED),
moved AS (
  UPDATE {schema}.stream s SET head = s.head + 1
  FROM m JOIN cur ON cur.shard = m.shard AND cur.name IS NOT DISTINCT FROM m.stream
  WHERE s.shard = m.shard AND m.workspace = s.workspace AND s.name = m.stream
    AND (m.want IS NULL OR s.head = m.want)
  RETURNING m.member, s.head),
kept AS (
  INSERT INTO {schema}.event (shard, workspace, id, n, at)
  SELECT m.shard, m.workspace, m.id, moved.head, t.now FROM m JOIN moved USING (member), t
  ON CONFLICT (shard, id, n) DO UPDATE SET head = excluded.n WHERE event.n < 0
  RETURNING id),
gone AS (
  DELETE FROM {schema}.due d USING m, moved
  WHERE d.shard = m.shard AND d.workspace = m.workspace AND d.stream = m.stream)
SELECT m.member, extract(epoch FROM t.now), coalesce(moved.head, s.head)
FROM (m LEFT JOIN moved USING (member))
LEFT JOIN {schema}.stream AS s ON s.shard = m.shard AND s.workspace = m.workspace,
  t, LATERAL (SELECT count(*) FILTER (WHERE e.n > 0) FROM {schema}.event e
              WHERE (e.shard = m.shard AND e.workspace = m.workspace)) AS c
UNION ALL
SELECT 0, 0, w.shard FROM {schema}.workspace w;
`,
	SQLite: `
-- do
-- The head moves if it is where the caller saw it.
UPDATE holdfast_stream AS s SET head = s.head + 1, at = {now}
WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4 AND CASE WHEN ?5 IS NULL THEN 1 ELSE s.head = ?5 END
RETURNING s.head;
-- then
INSERT INTO holdfast_event (shard, workspace, id, n) VALUES (?1, ?2, ?3, 0);
-- each
DELETE FROM holdfast_due AS d WHERE d.shard = ?1 AND d.workspace = ?2
  AND d.stream IN (SELECT j.value FROM json_each(?6) AS j);
-- else
SELECT s.head FROM holdfast_stream s
LEFT JOIN holdfast_hold h ON h.shard = s.shard AND h.workspace = s.workspace AND h.stream = s.name
WHERE s.shard = ?1 AND s.workspace = ?2;
`,
}

var goodMigration = map[Dialect]string{
	Postgres: `
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE {schema}.clock (one boolean PRIMARY KEY DEFAULT true, ahead interval NOT NULL);
CREATE TABLE {schema}.stream (
  shard smallint NOT NULL, workspace text NOT NULL, name text NOT NULL,
  head bigint NOT NULL DEFAULT -1 CHECK (head >= -1), at timestamptz,
  CONSTRAINT stream_key PRIMARY KEY (shard, workspace, name));
CREATE TABLE {schema}.event (
  shard smallint NOT NULL, id uuid NOT NULL, n int NOT NULL, workspace text NOT NULL, name text,
  PRIMARY KEY (shard, id, n), UNIQUE NULLS NOT DISTINCT (shard, workspace, name),
  FOREIGN KEY (shard, workspace, name) REFERENCES {schema}.stream (shard, workspace, name)
) PARTITION BY RANGE (id);
CREATE TABLE {schema}.event_first PARTITION OF {schema}.event DEFAULT;
CREATE UNIQUE INDEX IF NOT EXISTS event_at ON {schema}.event USING btree (shard, workspace, n DESC) WHERE n > 0;
CREATE INDEX ON {schema}.event (shard, name);
CREATE FUNCTION {schema}.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT clock_timestamp() + ahead FROM x; $$;
ALTER TABLE {schema}.event ADD COLUMN IF NOT EXISTS actor text, ADD CONSTRAINT u UNIQUE (shard, workspace, actor);
INSERT INTO {schema}.clock (ahead) VALUES ('0');
`,
	SQLite: `
CREATE TABLE holdfast_stream (
  shard INTEGER NOT NULL, workspace TEXT NOT NULL, name TEXT NOT NULL, head INTEGER DEFAULT (-1),
  PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE holdfast_history (shard INTEGER, id BLOB, n INTEGER, PRIMARY KEY (shard, id, n));
CREATE INDEX holdfast_stream_head ON holdfast_stream (shard, head);
`,
}

func TestGoodSQL(t *testing.T) {
	testlevel.OneGoroutine(t)
	for d, src := range good {
		report(t, CheckStatements(d, d.folder()+"/sql/good.sql", src), nil)
	}
	for d, src := range goodMigration {
		report(t, CheckMigrations(d, map[string]string{"0001.sql": src}), nil)
	}
}

// Removing any predicate on shard or workspace from a good statement is a violation. (cur is a
// CTE and needs none.)
func TestEveryPredicateIsNeeded(t *testing.T) {
	testlevel.OneGoroutine(t)
	for d, src := range good {
		tokens, err := tokenize(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range predicates(tokens) {
			broken := src[:p.from] + "true" + src[p.to:]
			if len(CheckStatements(d, "x.sql", broken)) == 0 && p.left != "cur" {
				t.Errorf("%s line %d: no violation without %q", d.folder(), p.line, src[p.from:p.to])
			}
		}
	}
}

// predicate is an equality such as "a.shard = b.shard".
type predicate struct {
	from, to, line int
	left           string
}

func predicates(tokens []sqlToken) []predicate {
	var found []predicate
	for i := 3; i+1 < len(tokens); i++ {
		column := tokens[i-1].text
		if !tokens[i].is(punct, "=") || column != "shard" && column != "workspace" {
			continue
		}
		end := tokens[i+1]
		if i+3 < len(tokens) && tokens[i+2].is(punct, ".") {
			end = tokens[i+3]
		}
		found = append(found, predicate{from: tokens[i-3].pos, to: end.pos + len(end.text), line: tokens[i].line, left: tokens[i-3].text})
	}
	return found
}

func TestPlantedStatements(t *testing.T) {
	testlevel.OneGoroutine(t)
	for _, c := range []struct {
		name string
		d    Dialect
		src  string
		want string // in the violation; "" for none
	}{
		{"no alias", Postgres, `SELECT head FROM {schema}.stream WHERE shard = $1 AND workspace = $2`, `{schema}.stream has no alias: write "{schema}.stream s"`},
		{"no workspace", Postgres, `SELECT s.head FROM {schema}.stream s WHERE s.shard = $1`, `{schema}.stream s is not bound to a workspace: add "s.workspace = …"`},
		{"no shard", SQLite, `SELECT e.id FROM holdfast_entity AS e WHERE e.workspace = ?1`, `holdfast_entity as e is not bound to a shard: add "e.shard = …"`},
		{"either side", Postgres, `SELECT s.head FROM {schema}.stream s WHERE $1 = s.shard AND $2 = s.workspace`, ""},
		{"by an index that is named", Postgres, `SELECT s.head FROM {schema}.stream s WHERE s.shard + 0 = $1 AND s.workspace = $2`, ""},
		{"by the other index that is named", Postgres, `SELECT s.head FROM {schema}.stream s WHERE 0 + s.shard = $1 AND s.workspace = $2`, ""},
		{"another shard", Postgres, `SELECT s.head FROM {schema}.stream s WHERE s.shard + 1 = $1 AND s.workspace = $2`, "not bound to a shard"},
		{"with itself", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND a.workspace = coalesce($2, a.workspace)`, "not bound to a workspace"},
		{"another column", Postgres, `SELECT 1 FROM {schema}.a a JOIN {schema}.b b ON b.shard = a.shard AND b.workspace = a.name WHERE a.shard = $1 AND a.workspace = $2`, "b is not bound to a workspace"},
		{"under OR", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND (a.workspace = $2 OR $3)`, "not bound to a workspace"},
		{"under NOT", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND NOT $2 = a.workspace`, "not bound to a workspace"},
		{"under CASE", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND CASE WHEN $3 THEN a.workspace = $2 ELSE true END`, "not bound to a workspace"},
		{"not equal", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND a.workspace <> $2`, "not bound to a workspace"},
		{"at least", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND a.workspace >= $2`, "not bound to a workspace"},
		{"in a string", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND a.name = 'a.workspace = $2'`, "not bound to a workspace"},
		{"in a comment", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 -- AND a.workspace = $2`, "not bound to a workspace"},
		{"in SET", Postgres, `UPDATE {schema}.a a SET workspace = a.workspace WHERE a.shard = $1`, "not bound to a workspace"},
		{"in the select list", Postgres, `SELECT a.workspace = $2 FROM {schema}.a a WHERE a.shard = $1`, "not bound to a workspace"},
		{"in another CTE", Postgres, `WITH x AS (SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND a.workspace = $2 AND a.workspace = $2) SELECT 1 FROM {schema}.a a WHERE a.shard = $1`, "not bound to a workspace"},
		{"in the other arm", Postgres, `SELECT 1 FROM {schema}.a a WHERE a.shard = $1 UNION SELECT 1 FROM {schema}.a a WHERE a.shard = $1 AND a.workspace = $2`, "not bound to a workspace"},
		{"the left of a LEFT JOIN", Postgres, `WITH m AS (SELECT 1) SELECT 1 FROM {schema}.a a LEFT JOIN m ON a.shard = m.shard AND a.workspace = m.workspace WHERE a.shard = $1`, "not bound to a workspace"},
		{"subquery", SQLite, `SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_a a WHERE a.shard = ?1)`, "not bound to a workspace"},
		{"subquery in a call", SQLite, `SELECT coalesce((SELECT 1 FROM holdfast_a a WHERE a.workspace = ?1), 2)`, "not bound to a shard"},
		{"second table of a list", Postgres, `SELECT 1 FROM {schema}.a a, {schema}.b b WHERE a.shard = $1 AND a.workspace = $2 AND b.shard = $1`, "b is not bound to a workspace"},
		{"table after a join", Postgres, `WITH m AS (SELECT 1) SELECT 1 FROM m JOIN m n ON true, {schema}.b b WHERE b.shard = $1`, "b is not bound to a workspace"},
		{"joined in parentheses", Postgres, `WITH m AS (SELECT 1) SELECT 1 FROM (m CROSS JOIN {schema}.b b) WHERE b.shard = $1`, "b is not bound to a workspace"},
		{"arms in parentheses", Postgres, `SELECT x.n FROM {schema}.b b, ((SELECT a.n FROM {schema}.a a WHERE a.shard = $1 AND a.workspace = $2) UNION ALL (SELECT a.n FROM {schema}.a a WHERE a.shard = $1)) x WHERE b.shard = $1 AND b.workspace = $2`, "a is not bound to a workspace"},
		{"USING", Postgres, `DELETE FROM {schema}.a a USING {schema}.b b WHERE a.shard = $1 AND a.workspace = $2 AND b.shard = a.shard`, "b is not bound to a workspace"},
		{"DELETE", SQLite, `DELETE FROM holdfast_a AS a WHERE a.shard = ?1`, "not bound to a workspace"},
		{"UPDATE in a CTE", Postgres, `WITH x AS (UPDATE {schema}.a a SET n = 1 WHERE a.shard = $1 RETURNING 1) SELECT 1 FROM x`, "UPDATE {schema}.a a SET n = 1 WHERE a.shard = $1 RETURNING 1: {schema}.a a is not bound to a workspace"},
		{"INSERT from", Postgres, `INSERT INTO {schema}.a (n) SELECT b.n FROM {schema}.b b WHERE b.shard = $1 ON CONFLICT (n) DO UPDATE SET n = 1 WHERE b.workspace = $2`, "b is not bound to a workspace"},

		{"UPDATE without WHERE", SQLite, `UPDATE holdfast_clock SET ahead = ?1`, "UPDATE without a WHERE"},
		{"DELETE without WHERE", Postgres, `WITH x AS (DELETE FROM {schema}.clock RETURNING 1) SELECT 1 FROM x WHERE true`, "DELETE without a WHERE"},
		{"upsert", SQLite, `INSERT INTO holdfast_a AS a (n) VALUES (?1) ON CONFLICT (n) DO UPDATE SET n = 2`, ""},
		{"TRUNCATE", Postgres, `TRUNCATE {schema}.stream`, "TRUNCATE is not bound to a workspace"},
		{"excepted", Postgres, `SELECT shard FROM {schema}.workspace`, ""},

		{"without schema", Postgres, `SELECT 1 FROM stream s WHERE s.shard = $1 AND s.workspace = $2`, "the table name stream has the wrong form: write {schema}.stream"},
		{"other schema", Postgres, `INSERT INTO public.stream (n) VALUES (1)`, "the table name public.stream has the wrong form"},
		{"without prefix", SQLite, `UPDATE stream AS s SET n = 1 WHERE s.shard = ?1 AND s.workspace = ?2`, "the table name stream has the wrong form: write holdfast_stream"},
		{"insert without prefix", SQLite, `INSERT INTO stream (n) VALUES (1)`, "write holdfast_stream"},
		{"a user's table", Postgres, `UPDATE {table} AS u SET {status} = $1 WHERE u.{id} = $2`, ""},
		{"the catalogue", Postgres, `SELECT 1 FROM pg_catalog.pg_class c JOIN pg_stat_activity a ON true`, ""},

		{"now()", Postgres, `SELECT now()`, "now() reads the time: take the time from {now}"},
		{"Now ()", Postgres, `SELECT 1 WHERE $1 < Now ( )`, "now() reads the time"},
		{"clock_timestamp()", Postgres, `SELECT clock_timestamp()`, "clock_timestamp() reads the time"},
		{"current_timestamp", SQLite, `SELECT CURRENT_TIMESTAMP`, "current_timestamp reads the time"},
		{"datetime('now')", SQLite, `SELECT datetime('now', '+1 day')`, "'now' reads the time"},
		{"unixepoch()", SQLite, `SELECT unixepoch()`, "unixepoch() reads the time"},
		{"a column", Postgres, `WITH t AS (SELECT {now} AS now) SELECT t.now, 'it is now()' FROM t`, ""},

		{"two statements", Postgres, `SELECT 1; SELECT 2`, "has 2 statements: write one"},
		{"no statement", SQLite, "-- do\n-- then\nSELECT 1", "section do: has 0 statements"},
		{"before the sections", SQLite, "SELECT 1;\n-- do\nSELECT 2;", "begin with -- do"},
		{"open string", SQLite, `SELECT 'a`, "a ' is never closed"},
		{"open group", SQLite, `SELECT (1`, `a "(" is never closed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := CheckStatements(c.d, "x.sql", c.src)
			if c.want == "" {
				report(t, found, nil)
				return
			}
			wantOne(t, found, "x.sql", c.want)
		})
	}
}

// Tables that are joined only with each other are not bound.
func TestPlantedIsland(t *testing.T) {
	testlevel.OneGoroutine(t)
	src := "SELECT 1 FROM {schema}.a a\nJOIN {schema}.b b ON a.shard = b.shard AND a.workspace = b.workspace\nWHERE a.shard = $1"
	wantPlaces(t, CheckStatements(Postgres, "x.sql", src), nil, "x.sql:1", "x.sql:2")
}

// Sections are checked separately: a predicate in one does not count for another.
func TestPlantedSections(t *testing.T) {
	testlevel.OneGoroutine(t)
	src := strings.Replace(good[SQLite], "d.workspace = ?2", "d.stream = ?2", 1)
	found := CheckStatements(SQLite, "sqlite/sql/x.sql", src)
	wantOne(t, found, "sqlite/sql/x.sql", "section each: DELETE FROM holdfast_due AS d")
	wantPlaces(t, found, nil, "sqlite/sql/x.sql:10")
}

// A wide verb may leave one table untied, but tables joined to it must be tied.
func TestPlantedWide(t *testing.T) {
	testlevel.OneGoroutine(t)
	Wide["planted"] = "for this test"
	defer delete(Wide, "planted")
	src := `SELECT 1 FROM {schema}.task t JOIN {schema}.run r ON r.shard = t.shard AND r.workspace = t.workspace WHERE t.due < {now}`
	report(t, CheckStatements(Postgres, "postgres/sql/planted.fast", src), nil)
	src = strings.Replace(src, "r.workspace = t.workspace", "true", 1)
	wantOne(t, CheckStatements(Postgres, "planted.sql", src), "planted.sql", "r is not bound to a workspace")
}

func TestPlantedMigrations(t *testing.T) {
	testlevel.OneGoroutine(t)
	const columns = "shard smallint, workspace text, id uuid, name text, token text"
	for _, c := range []struct {
		name string
		d    Dialect
		src  string
		want string
	}{
		{"no key", Postgres, `CREATE TABLE {schema}.a (` + columns + `)`, "the table a has no primary key"},
		{"from a query", SQLite, `CREATE TABLE holdfast_a AS SELECT 1`, "has no primary key"},
		{"no shard", Postgres, `CREATE TABLE {schema}.a (` + columns + `, PRIMARY KEY (workspace, name))`, "PRIMARY KEY (workspace, name) of a does not lead with shard"},
		{"a column's key", SQLite, `CREATE TABLE holdfast_a (id INTEGER PRIMARY KEY AUTOINCREMENT, shard INTEGER)`, "PRIMARY KEY (id) of a does not lead with shard"},
		{"no workspace", Postgres, `CREATE TABLE {schema}.a (` + columns + `, PRIMARY KEY (shard, name))`, "PRIMARY KEY (shard, name) of a does not name the workspace"},
		{"an id of text", SQLite, `CREATE TABLE holdfast_a (shard INTEGER, id TEXT, PRIMARY KEY (shard, id))`, "does not name the workspace"},
		{"a uuid that is no id", Postgres, `CREATE TABLE {schema}.a (shard int, sum uuid, PRIMARY KEY (shard, sum))`, "does not name the workspace"},
		{"unique constraint", Postgres, `CREATE TABLE {schema}.a (` + columns + `, PRIMARY KEY (shard, id), CONSTRAINT u UNIQUE (token))`, "UNIQUE (token) of a does not lead with shard"},
		{"unique column", Postgres, `CREATE TABLE {schema}.a (shard int, id uuid, token text NOT NULL UNIQUE, PRIMARY KEY (shard, id))`, "UNIQUE (token) of a does not lead with shard"},
		{"unique index", Postgres, `CREATE UNIQUE INDEX i ON {schema}.a (shard, token)`, "UNIQUE INDEX (shard, token) of a does not name the workspace"},
		{"index", SQLite, `CREATE INDEX i ON holdfast_a (name)`, "INDEX (name) of a does not lead with shard"},
		{"index on an expression", Postgres, `CREATE INDEX i ON {schema}.a (lower(name), shard)`, "does not lead with shard"},
		{"added constraint", Postgres, `ALTER TABLE ONLY {schema}.a ADD CONSTRAINT u UNIQUE (name)`, "UNIQUE (name) of a does not lead with shard"},
		{"added column", Postgres, `ALTER TABLE {schema}.a ADD COLUMN token text UNIQUE`, "UNIQUE (token) of a does not lead with shard"},
		{"excepted", Postgres, `CREATE TABLE {schema}.migration (version int PRIMARY KEY)`, ""},

		{"table's name", Postgres, `CREATE TABLE a (shard int, id uuid, PRIMARY KEY (shard, id))`, "the table name a has the wrong form: write {schema}.a"},
		{"index's table", SQLite, `CREATE INDEX i ON a (shard)`, "write holdfast_a"},
		{"reference", SQLite, `CREATE TABLE holdfast_a (shard INTEGER, id BLOB REFERENCES b (id), PRIMARY KEY (shard, id))`, "write holdfast_b"},
		{"filled table", Postgres, `INSERT INTO clock VALUES (1)`, "write {schema}.clock"},

		{"default now()", Postgres, `CREATE TABLE {schema}.clock (at timestamptz NOT NULL DEFAULT now(), n int)`, "now() reads the time: set it in the statement that writes the row"},
		{"default in SQLite", SQLite, `CREATE TABLE holdfast_clock (at TEXT DEFAULT CURRENT_TIMESTAMP)`, "current_timestamp reads the time"},
		{"default in parentheses", SQLite, `CREATE TABLE holdfast_clock (at TEXT DEFAULT (unixepoch('now')))`, "'now' reads the time"},
		{"default added", Postgres, `ALTER TABLE {schema}.clock ALTER COLUMN at SET DEFAULT clock_timestamp()`, "clock_timestamp() reads the time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := CheckMigrations(c.d, map[string]string{"0001.sql": c.src})
			if c.want == "" {
				report(t, found, nil)
				return
			}
			wantOne(t, found, "0001.sql", c.want)
		})
	}
}

// An index may be in a later file than its table.
func TestMigrationsAreReadTogether(t *testing.T) {
	testlevel.OneGoroutine(t)
	report(t, CheckMigrations(Postgres, map[string]string{
		"0002.sql": `CREATE UNIQUE INDEX i ON {schema}.a (shard, id, n)`,
		"0001.sql": `CREATE TABLE {schema}.a (shard int, id uuid, n int, PRIMARY KEY (shard, id))`,
	}), nil)
}

func TestPlantedFiles(t *testing.T) {
	testlevel.OneGoroutine(t)
	real := Wide
	Wide = nil
	t.Cleanup(func() { Wide = real })
	file := func(src string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(src)} }
	files := fstest.MapFS{
		"postgres/migrations/0001.sql": file(`CREATE TABLE a (shard int)`),
		"sqlite/testdata/bad.sql":      file(`SELECT now()`),
	}
	found, read, err := Migrations(files)
	wantPlaces(t, found, err, "postgres/migrations/0001.sql:1", "postgres/migrations/0001.sql:1")
	if read != 1 {
		t.Errorf("read %d files, want 1", read)
	}
	if _, read, err = Migrations(fstest.MapFS{}); read != 0 || err != nil {
		t.Errorf("empty module: read %d migrations, error %v, want none", read, err)
	}

	pg := map[string]string{"a.put": `SELECT 1`, "a.put.fast": `SELECT now()`, "a.more": `SELECT 1`}
	lite := map[string]string{"a.put": "-- do\nSELECT 1;\n-- else\nDELETE FROM holdfast_clock", "a.less": `SELECT 1`}
	wantPlaces(t, SQL(Postgres, pg), nil, "postgres/sql/a.put.fast:1")
	wantPlaces(t, SQL(SQLite, lite), nil, "sqlite/sql/a.put:4")
	wantPlaces(t, SameVerbs(lite, pg), nil, "postgres/sql/a.less:1", "sqlite/sql/a.more:1")
}

func TestExceptionsGiveReasons(t *testing.T) {
	testlevel.OneGoroutine(t)
	for _, list := range []map[string]string{Excepted, Wide} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if list[name] == "" {
				t.Errorf("exception %s has no reason", name)
			}
		}
	}
}

func TestTokenize(t *testing.T) {
	testlevel.OneGoroutine(t)
	const src = "SELECT a.\"B\", 'it''s', E'\\'', $1::int, ?2, {now} -- end\n/* a /* b */ c */ $f$ x; $f$ arr[1:2]<=1.5"
	tokens, err := tokenize(src)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tok := range tokens {
		got = append(got, tok.text)
	}
	want := []string{
		"select", "a", ".", "B", ",", "it''s", ",", `\'`, ",", "$1", "::", "int", ",", "?2", ",", "now", "end",
		"a /* b */ c", " x; ", "arr", "[", "1", ":", "2", "]", "<=", "1.5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if last := tokens[len(tokens)-1]; last.line != 2 {
		t.Errorf("the last token is on line %d, want 2", last.line)
	}
}

// No input makes the checks panic.
func FuzzSQL(f *testing.F) {
	for _, src := range good {
		f.Add(src)
	}
	for _, src := range goodMigration {
		f.Add(src)
	}
	f.Add("UPDATE holdfast_")
	f.Fuzz(func(t *testing.T, src string) {
		for _, d := range []Dialect{SQLite, Postgres} {
			CheckStatements(d, "x.sql", src)
			CheckMigrations(d, map[string]string{"x.sql": src})
		}
	})
}
