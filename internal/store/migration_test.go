package store

import (
	"testing"
	"testing/fstest"

	"github.com/holdfast-go/holdfast/fault"
)

// migrations loads migrations from texts by file name.
func migrations(texts map[string]string) ([]Migration, error) {
	files := make(fstest.MapFS)
	for name, text := range texts {
		files["migrations/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return LoadMigrations(files)
}

// Verifies that migrations without a gap are read in order, and that mistakes in them are found.
func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	t.Parallel()
	all, err := migrations(map[string]string{"0002_b.sql": "-- min_reader: 1\n", "0001_a.sql": "-- min_reader: 1\n", "0003_c.sql": "-- min_reader: 3\n"})
	if err != nil || len(all) != 3 || all[1].Name != "b" || all[2].MinReader != 3 || all[0].Sum == all[2].Sum {
		t.Errorf("got migrations %+v, error %v", all, err)
	}
	for name, texts := range map[string]map[string]string{
		"a gap":                   {"0001_a.sql": "-- min_reader: 1\n", "0003_c.sql": "-- min_reader: 1\n"},
		"no first one":            {"0002_b.sql": "-- min_reader: 1\n"},
		"a number that is twice":  {"0001_a.sql": "-- min_reader: 1\n", "0001_b.sql": "-- min_reader: 1\n"},
		"no min_reader":           {"0001_a.sql": "SELECT 1;\n"},
		"min_reader 0":            {"0001_a.sql": "-- min_reader: 0\n"},
		"a min_reader of later":   {"0001_a.sql": "-- min_reader: 2\n"},
		"a min_reader that falls": {"0001_a.sql": "-- min_reader: 1\n", "0002_b.sql": "-- min_reader: 2\n", "0003_c.sql": "-- min_reader: 1\n"},
		"a name of another form":  {"1_a.sql": "-- min_reader: 1\n"},
	} {
		if all, err := migrations(texts); err == nil {
			t.Errorf("%s: got migrations %+v, want an error", name, all)
		}
	}
}

// Verifies the pending migrations of a database, and which databases are refused: the first migration
// distinguishes a database from one built by other migrations with the same numbers.
func TestPendingMigrations(t *testing.T) {
	t.Parallel()
	known := []Migration{{Number: 1, Name: "baseline", Sum: "a"}, {Number: 2, Name: "next", Sum: "b"}}
	first, second := Applied{1, "baseline", 1, "a"}, Applied{2, "next", 1, "b"}
	for name, c := range map[string]struct {
		applied []Applied
		pending int
		code    fault.Code
	}{
		"an empty one":                      {nil, 2, ""},
		"one behind":                        {[]Applied{first}, 1, ""},
		"a current one":                     {[]Applied{first, second}, 0, ""},
		"one ahead":                         {[]Applied{first, second, {3, "x", 2, "c"}}, 0, ""},
		"one that excludes this program":    {[]Applied{first, second, {3, "x", 3, "c"}}, 0, fault.DatabaseTooNew},
		"one that lacks a record":           {[]Applied{second}, 0, fault.DatabaseDamaged},
		"another build's first one":         {[]Applied{{1, "baseline", 1, "x"}}, 0, fault.DatabaseForeign},
		"another build's second one":        {[]Applied{first, {2, "next", 1, "x"}}, 0, fault.DatabaseForeign},
		"one from before the first release": {[]Applied{{1, "ground", 1, "x"}, second}, 0, fault.DatabaseForeign},
		"a later one of those":              {[]Applied{{1, "ground", 1, "x"}, {2, "tasks", 1, "y"}, {3, "reactions", 3, "z"}}, 0, fault.DatabaseForeign},
	} {
		pending, err := Pending(known, c.applied)
		if len(pending) != c.pending || fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %d pending migrations, error %v", name, len(pending), err)
		}
	}
}
