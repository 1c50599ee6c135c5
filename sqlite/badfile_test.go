package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

var options = store.Options{Log: quiet.Log}

// badFile is a file that must be refused: how it is created at a path, and the expected code.
type badFile struct {
	name string
	make func(t *testing.T, path string)
	code fault.Code
}

// TestABadFileIsRefusedByNameAndNotTouched verifies that every file that is not an intact database
// of ours is refused with its own code and an error that names the file, at the first attempt and
// at the second, by Open and by Migrate; and that no byte of it, or of the log beside it, is
// changed.
func TestABadFileIsRefusedByNameAndNotTouched(t *testing.T) {
	t.Parallel()
	for _, bad := range badFiles() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			path := dbPath(t)
			bad.make(t, path)
			before := snapshot(t, filepath.Dir(path))
			for range 2 {
				testkit.WantCode(t, openError(t, sqlite.File(path), quiet), bad.code, path)
				if _, err := store.DatabaseOf(sqlite.File(path)).Migrate(t.Context(), options); fault.CodeOf(err) != bad.code {
					t.Errorf("Migrate: got %v, want %s", err, bad.code)
				}
			}
			wantSame(t, filepath.Dir(path), before)
		})
	}
}

func badFiles() []badFile {
	const page = 4096
	return []badFile{
		{"random bytes", writeRandom, fault.DatabaseForeign},
		{"a text", writeText, fault.DatabaseForeign},
		{"a short text", func(t *testing.T, path string) { writeFile(t, path, []byte("hello\n")) }, fault.DatabaseForeign},
		{"truncated to half", truncated(func(n int) int { return n / 2 / page * page }), fault.DatabaseDamaged},
		{"truncated inside a page", truncated(func(n int) int { return n/2/page*page + 1000 }), fault.DatabaseDamaged},
		{"truncated by one page", truncated(func(n int) int { return n - page }), fault.DatabaseDamaged},
		{"truncated to one page", truncated(func(int) int { return page }), fault.DatabaseDamaged},
		{"truncated to 100 bytes", truncated(func(int) int { return 100 }), fault.DatabaseDamaged},
		{"truncated to 50 bytes", truncated(func(int) int { return 50 }), fault.DatabaseDamaged},
		{"truncated to 10 bytes", truncated(func(int) int { return 10 }), fault.DatabaseForeign},
		{"truncated to nothing with a log beside it", cutWithLog(0), fault.DatabaseDamaged},
		{"truncated to 100 bytes with a log beside it", cutWithLog(100), fault.DatabaseDamaged},
		{"truncated to one page with a log beside it", cutWithLog(page), fault.DatabaseDamaged},
		{"truncated to three pages with a log beside it", cutWithLog(3 * page), fault.DatabaseDamaged},
		{"a page of the events destroyed", pageDamaged("holdfast_event", 0), fault.DatabaseDamaged},
		{"a page of the streams destroyed", pageDamaged("holdfast_stream", 0), fault.DatabaseDamaged},
		{"a page of the record of migrations destroyed", pageDamaged("holdfast_migration", 0), fault.DatabaseDamaged},
		{"a page of the events with wild pointers", pageDamaged("holdfast_event", 8), fault.DatabaseDamaged},
		{"the page of the schema destroyed", patched(100, bytes.Repeat([]byte{0xff}, 40)), fault.DatabaseDamaged},
		{"the magic destroyed", patched(0, []byte("not a data base ")), fault.DatabaseForeign},
		{"the page size destroyed", patched(16, []byte{0x12, 0x34}), fault.DatabaseForeign},
		{"the whole header destroyed", patched(0, bytes.Repeat([]byte{0xaa}, 100)), fault.DatabaseForeign},
		{"a dropped table", changed(`DROP TABLE holdfast_event`), fault.DatabaseDamaged},
		{"a dropped table of scopes", changed(`DROP TABLE holdfast_scope`), fault.DatabaseDamaged},
		{"a dropped column", changed(`ALTER TABLE holdfast_event DROP COLUMN actor`), fault.DatabaseDamaged},
		{"a dropped clock", changed(`DROP TABLE holdfast_clock`), fault.DatabaseDamaged},
		{"tables of our name without our record", foreignNames, fault.DatabaseForeign},
		{"tables of our name without our record, in WAL mode", foreignNamesWAL, fault.DatabaseForeign},
		{"another program's holdfast_migration", foreignRecord, fault.DatabaseForeign},
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeRandom(t *testing.T, path string) {
	seed := testlevel.Seed()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	content := make([]byte, 20_000)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	writeFile(t, path, content)
}

func writeText(t *testing.T, path string) {
	writeFile(t, path, bytes.Repeat([]byte("dear diary, today nothing happened.\n"), 500))
}

// truncated cuts an intact database to a length.
func truncated(length func(int) int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		makeDatabase(t, path)
		content := readFile(t, path)
		n := length(len(content))
		if n >= len(content) {
			t.Fatalf("the database has only %d bytes, too few to damage", len(content))
		}
		writeFile(t, path, content[:n])
	}
}

// cutWithLog cuts a database whose newest writes are still in the log beside it, as in a copy of a
// running program's file.
func cutWithLog(length int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		content, log := midway(t)
		if len(content) <= length {
			t.Fatalf("the database has only %d bytes, too few to truncate", len(content))
		}
		writeFile(t, path, content[:length])
		writeFile(t, path+"-wal", log)
	}
}

// midway returns the bytes of a database and of its log while a program has it
// open and has just written.
func midway(t *testing.T) (content, log []byte) {
	t.Helper()
	path := dbPath(t)
	makeDatabase(t, path)
	hf, err := holdfast.Open(t.Context(), sqlite.File(path), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer hf.Close()
	for range 5 {
		mustAppend(t, hf, "late", stream.Any, "late")
	}
	content, log = readFile(t, path), readFile(t, path+"-wal")
	if len(log) == 0 {
		t.Fatal("the write-ahead log is empty")
	}
	return content, log
}

// pageDamaged overwrites a part of the first page of a table, from an offset on.
func pageDamaged(table string, from int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		makeDatabase(t, path)
		db := openSQL(t, path)
		root := queryInt(t, db, `SELECT rootpage FROM sqlite_schema WHERE name = ?`, table)
		size := queryInt(t, db, `PRAGMA page_size`)
		db.Close()
		content := readFile(t, path)
		for i := from; i < 60; i++ {
			content[(root-1)*size+i] ^= 0xa5
		}
		writeFile(t, path, content)
	}
}

func patched(at int, with []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		makeDatabase(t, path)
		content := readFile(t, path)
		copy(content[at:], with)
		writeFile(t, path, content)
	}
}

func changed(statement string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		makeDatabase(t, path)
		db := openSQL(t, path)
		execSQL(t, db, statement)
		db.Close()
	}
}

func foreignNames(t *testing.T, path string) {
	db := openSQL(t, path)
	execSQL(t, db, `CREATE TABLE holdfast_x (a)`, `INSERT INTO holdfast_x VALUES (1)`)
	db.Close()
}

func foreignNamesWAL(t *testing.T, path string) {
	db := openSQL(t, path)
	execSQL(t, db, `PRAGMA journal_mode = WAL`, `CREATE TABLE holdfast_x (a)`, `INSERT INTO holdfast_x VALUES (1)`)
	db.Close()
}

func foreignRecord(t *testing.T, path string) {
	db := openSQL(t, path)
	execSQL(t, db, `CREATE TABLE holdfast_migration (version TEXT)`, `INSERT INTO holdfast_migration VALUES ('7')`)
	db.Close()
}

// TestADatabaseWithALogBesideItIsWhole verifies that a database with a log beside it, as a crash
// leaves them, is intact: the contents of the log are there.
func TestADatabaseWithALogBesideItIsWhole(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	content, log := midway(t)
	writeFile(t, path, content)
	writeFile(t, path+"-wal", log)
	hf := openEngine(t, sqlite.File(path))
	if names := wantGapless(t, hf, "late"); len(names) != 5 {
		t.Errorf("got %d events, want 5", len(names))
	}
}

// TestWhatIsNoFileIsRefused verifies that a path that is not a file is refused: a folder, a path in
// a folder that does not exist, an in-memory database, an empty name; and that nothing is created.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	for _, c := range []struct {
		path string
		code fault.Code
		part string
	}{
		{filepath.Join(dir, "folder"), fault.DatabaseForeign, filepath.Join(dir, "folder")},
		{filepath.Join(dir, "none", "app.db"), fault.NotFound, filepath.Join(dir, "none")},
		{os.DevNull, fault.DatabaseForeign, os.DevNull},
		{":memory:", fault.Validation, ":memory:"},
		{"file:app.db?mode=memory", fault.Validation, "mode=memory"},
		{"", fault.Validation, `""`},
	} {
		t.Run(fmt.Sprintf("%q", filepath.Base(c.path)), func(t *testing.T) {
			testkit.WantCode(t, openError(t, sqlite.File(c.path), quiet), c.code, c.part)
		})
	}
	wantSame(t, dir, before)
	if _, err := os.Stat(":memory:"); err == nil {
		t.Error("a file named :memory: was created")
	}
}

// TestAPathMayHoldAnyCharacter verifies that characters with a meaning in a URI or in SQL are part
// of the file's name.
func TestAPathMayHoldAnyCharacter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b.db", "a%20b.db", "a?mode=memory.db", "a#b.db", "it's;--.db", "ü€.db", ":memory:.db"} {
		path := filepath.Join(t.TempDir(), name)
		hf, err := holdfast.Open(t.Context(), sqlite.File(path), quiet)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		mustAppend(t, hf, "s", stream.None, "")
		hf.Close()
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q was not created as a file: %v", name, err)
		}
	}
}

// TestAloneRefusesAnotherProgramsDatabase verifies that the server's option Dedicated keeps a mistyped
// path from adding tables to another program's database, and accepts an empty file and one of ours; and that options
// that are out of range or without effect are refused.
func TestAloneRefusesAnotherProgramsDatabase(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	others(t, path)
	before := snapshot(t, filepath.Dir(path))
	testkit.WantCode(t, openError(t, sqlite.File(path, sqlite.Dedicated()), quiet), fault.DatabaseForeign, path, "(1)")
	wantSame(t, filepath.Dir(path), before)

	testkit.WantCode(t, openError(t, sqlite.File(path, sqlite.Readers(-1)), quiet), fault.Validation, "Readers")
	role := holdfast.Migration{RuntimeRole: "app"}
	_, _, err := holdfast.Migrate(t.Context(), sqlite.File(path), role)
	testkit.WantCode(t, err, fault.Validation, "RuntimeRole")
	_, err = holdfast.MigrationScript(sqlite.File(path), role)
	testkit.WantCode(t, err, fault.Validation, "RuntimeRole")
	wantSame(t, filepath.Dir(path), before)

	ours := dbPath(t)
	for range 2 {
		hf, err := holdfast.Open(t.Context(), sqlite.File(ours, sqlite.Dedicated()), quiet)
		if err != nil {
			t.Fatal(err)
		}
		hf.Close()
	}
}

func others(t *testing.T, path string) {
	t.Helper()
	db := openSQL(t, path)
	execSQL(t, db, `CREATE TABLE invoice (id INTEGER PRIMARY KEY, cents INTEGER)`, `INSERT INTO invoice VALUES (1, 100), (2, 250)`)
	db.Close()
}

// TestAnotherProgramsTablesStayIntactAndUsable verifies that another program's database can be
// shared: its rows are unchanged, both programs write, and both find what they wrote.
func TestAnotherProgramsTablesStayIntactAndUsable(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	others(t, path)
	hf := openEngine(t, sqlite.File(path))
	if err := useEverything(t.Context(), hf, "beside"); err != nil {
		t.Fatal(err)
	}
	db := openSQL(t, path)
	execSQL(t, db, `INSERT INTO invoice VALUES (3, 50)`)
	if sum := queryInt(t, db, `SELECT sum(cents) FROM invoice`); sum != 400 {
		t.Errorf("invoices sum up to %d, want 400", sum)
	}
	mustAppend(t, hf, "beside", 1, "still")
}
