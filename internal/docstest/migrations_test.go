package docstest

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// migrationHeading matches the beginning of a migration in the script that "holdfast migrate --print" prints: its number, its name,
// the line that it has if old nodes must be stopped, and what it does.
var migrationHeading = regexp.MustCompile(`(?m)^-- migration (\d+): (\w+)\n(-- Stop all nodes whose schema number is less than (\d+) first.*\n)?-- (.*(?:\n-- .*)*?)\n-- min_reader: (\d+)$`)

// TestMigrationsAreListed verifies that docs/upgrading.md lists each migration, and says which of them need old nodes
// stopped, on both databases. With -update, it writes them.
func TestMigrationsAreListed(t *testing.T) {
	testlevel.OneGoroutine(t)
	var tables, stops []string
	for _, db := range []holdfast.Database{postgres.URL("postgres://unused"), sqlite.File("unused.db")} {
		script, err := holdfast.MigrationScript(db, holdfast.Migration{})
		if err != nil {
			t.Fatal(err)
		}
		table, stop := migrations(t, script)
		tables, stops = append(tables, table), append(stops, stop)
	}
	if stops[0] != stops[1] {
		t.Errorf("old nodes are stopped before these migrations of PostgreSQL: %s, and before these of SQLite: %s", stops[0], stops[1])
	}
	const name = "docs/upgrading.md"
	page, err := os.ReadFile(path.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Section(string(page), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	if got == tables[0] {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the migrations: run go test ./internal/docstest -update\nwant:\n%s", name, tables[0])
	}
	if err := os.WriteFile(path.Join(root, name), []byte(ReplaceSection(string(page), "migrations", tables[0])), 0o644); err != nil {
		t.Fatal(err)
	}
}

// migrations returns the table of the migrations of a script, and which of them need old nodes stopped.
func migrations(t *testing.T, script string) (table, stops string) {
	t.Helper()
	var out strings.Builder
	out.WriteString("| schema | what changes | old nodes stopped first |\n| --- | --- | --- |\n")
	all := migrationHeading.FindAllStringSubmatch(script, -1)
	least := "1"
	for i, m := range all {
		stopped := "no"
		if m[3] != "" {
			stopped = fmt.Sprintf("**yes**: nodes with a schema number below %s", m[4])
			stops += fmt.Sprintf(" %s (below %s)", m[1], m[4])
		}
		if number, minReader := m[1], m[6]; number != fmt.Sprint(i+1) || (m[3] != "") != (minReader != least) || m[3] != "" && m[4] != minReader {
			t.Errorf("the heading of migration %s does not fit its min_reader %s, which was %s before", number, minReader, least)
		}
		least = m[6]
		what, _, _ := strings.Cut(strings.ReplaceAll(m[5], "\n-- ", " "), ". ")
		fmt.Fprintf(&out, "| %s | %s | %s |\n", m[1], strings.TrimSuffix(what, "."), stopped)
	}
	if n := len(regexp.MustCompile(`(?m)^-- migration \d+: `).FindAllString(script, -1)); n != len(all) || n == 0 {
		t.Errorf("the script has %d migrations, of which %d are read", n, len(all))
	}
	return out.String(), fmt.Sprint(len(all), " migrations,", stops)
}
