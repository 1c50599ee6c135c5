package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

const databaseForms = "use sqlite:holdfast.db, postgres://user@host:5432/name, or keywords that begin with host="

// scheme matches a URL scheme. A single letter is a Windows drive, not a scheme.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// open returns the database that the flags name, without connecting to it.
func (f databaseFlags) open() (holdfast.Database, error) {
	if path, ok := f.sqlitePath(); ok {
		return openSQLite(path)
	}
	if f.isPostgres() {
		trustRoots() // with sslmode=verify-full
		return postgres.URL(f.DB, postgres.Schema(f.Schema)), nil
	}
	if s := scheme.FindString(f.DB); s != "" { // the rest may contain a password
		return nil, misuse("--db specifies the unknown database type %q: %s", s, databaseForms)
	}
	return nil, misuse("--db must name the database type: %s", databaseForms)
}

func (f databaseFlags) isPostgres() bool {
	return hasAnyPrefix(f.DB, "postgres://", "postgresql://", "host=")
}

// sqlitePath returns the file of a SQLite database: the text after sqlite:, or a plain
// path with the extension of a SQLite file.
func (f databaseFlags) sqlitePath() (string, bool) {
	if path, ok := strings.CutPrefix(f.DB, "sqlite:"); ok {
		return path, true
	}
	plain := !scheme.MatchString(f.DB) && slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, filepath.Ext(f.DB))
	return f.DB, plain && !f.isPostgres()
}

func openSQLite(path string) (holdfast.Database, error) {
	if path == "" || strings.HasPrefix(path, "//") {
		return nil, misuse("--db requires a file path directly after sqlite:, without //, for example sqlite:holdfast.db or sqlite:/var/lib/holdfast.db")
	}
	return sqlite.File(path, sqlite.Dedicated()), nil
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
