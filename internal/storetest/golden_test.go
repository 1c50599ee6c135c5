package storetest

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

var updateGolden = flag.Bool("update", false, "write the SQL to testdata/sql")

// golden returns the text of every verb and of its fast form, one file per capability. PostgreSQL's
// forms for a group and without due notices differ from the general one in a few words, and are
// left out; so is the offset of the time, which is for tests.
func golden(t *testing.T) map[string]string {
	t.Helper()
	lite, err := store.DatabaseOf(sqlite.File("")).Texts()
	if err != nil {
		t.Fatal(err)
	}
	pg, err := store.DatabaseOf(postgres.URL("")).Texts()
	if err != nil {
		t.Fatal(err)
	}
	shift := strings.NewReplacer(`(pg_catalog.clock_timestamp() + (SELECT c.shift FROM "holdfast".clock c))`, "pg_catalog.clock_timestamp()")
	files := make(map[string]string)
	for dialect, texts := range map[string]store.Texts{"sqlite": lite, "postgres": pg} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if strings.HasSuffix(name, ".group") || strings.HasSuffix(name, ".unmarked") {
				continue
			}
			capability, _, _ := strings.Cut(name, ".")
			files[filepath.Join("testdata/sql", dialect, capability+".golden")] += "==== " + name + "\n" + strings.TrimSpace(shift.Replace(texts[name])) + "\n\n"
		}
	}
	return files
}

// TestTheSQLThatTheDatabaseSees compares the statements, after names and fragments are filled in,
// with those in testdata/sql: a change of a fragment shows there in every statement that includes
// it. The flag -update rewrites them.
func TestTheSQLThatTheDatabaseSees(t *testing.T) {
	want := golden(t)
	have, err := filepath.Glob("testdata/sql/*/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range have {
		if want[file] == "" && !*updateGolden {
			t.Errorf("%s belongs to no golden file: run with -update", file)
		} else if want[file] == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for file, text := range want {
		if *updateGolden {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		was, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(was) != text {
			t.Errorf("%s: %s\nrun with -update if the change is intended", file, firstChange(string(was), text))
		}
	}
}

// firstChange describes where two texts first differ, and in which statement.
func firstChange(was, is string) string {
	old, verb := strings.Split(was, "\n"), ""
	for i, line := range strings.Split(is, "\n") {
		if strings.HasPrefix(line, "==== ") {
			verb = line[5:]
		}
		if i >= len(old) || old[i] != line {
			return verb + " is now\n  " + line + "\nand was\n  " + strings.Join(old[min(i, len(old)):min(i+1, len(old))], "")
		}
	}
	return "it has become shorter"
}
