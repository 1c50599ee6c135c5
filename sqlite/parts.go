package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// partsText returns the parts of a database: its tables with their columns, and its indexes.
const partsText = `SELECT m.name, p.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS p
 WHERE m.type = 'table' AND m.name GLOB 'holdfast_*'
 UNION ALL
SELECT m.name, '' FROM sqlite_schema AS m
 WHERE m.type = 'index' AND m.name GLOB 'holdfast_*'`

// part is a column of a table, or an index: then column is "".
type part struct{ name, column string }

// intended returns the parts that a database must have: those of one that was migrated from empty, without the indexes
// that no statement names. A later schema may have dropped such an index.
var intended = sync.OnceValues(func() (map[part]bool, error) {
	known, err := store.LoadMigrations(files)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, m := range known {
		if _, err := db.Exec(m.SQL); err != nil {
			return nil, err
		}
	}
	all, err := partsOf(context.Background(), db)
	if err != nil {
		return nil, err
	}
	texts, err := parsed()
	if err != nil {
		return nil, err
	}
	named := make(map[string]bool)
	for _, text := range texts.texts {
		for _, m := range indexedBy.FindAllStringSubmatch(text, -1) {
			named[m[1]] = true
		}
	}
	for p := range all {
		if p.column == "" && !named[p.name] {
			delete(all, p)
		}
	}
	return all, nil
})

var indexedBy = regexp.MustCompile(`INDEXED BY (\w+)`)

func partsOf(ctx context.Context, db *sql.DB) (map[part]bool, error) {
	rows, err := db.QueryContext(ctx, partsText)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[part]bool)
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.name, &p.column); err != nil {
			return nil, err
		}
		all[p] = true
	}
	return all, rows.Err()
}

// migratedParts is the digest of the parts after all migrations: comparing it is much faster than
// migrating an empty database. TestWhatAMigratedDatabaseHas prints the new value after a migration
// changes it.
const migratedParts = "b7a1d4fa7926dbce1b1e0198668d1f3e"

func digest(all map[part]bool) string {
	lines := make([]string, 0, len(all))
	for p := range all {
		lines = append(lines, p.name+"."+p.column)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

// checkTables refuses a database that lacks a part. Its schema number implies the part, so it was
// removed.
func (s *adapter) checkTables(ctx context.Context) error {
	var has map[part]bool
	err := store.Retry(ctx, func() (err error) {
		has, err = partsOf(ctx, s.read)
		return s.fault(err)
	})
	if err != nil || digest(has) == migratedParts {
		return err
	}
	want, err := intended()
	if err != nil {
		return err
	}
	for p := range want {
		if !has[p] {
			what := "the index " + p.name
			if p.column != "" {
				what = "the table " + p.name + ", or its column " + p.column
			}
			return fault.New(fault.DatabaseDamaged, "%s lacks %s: restore it from a backup. Nothing was changed", s.name, what)
		}
	}
	return nil
}
