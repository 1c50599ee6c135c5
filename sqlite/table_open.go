package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// OpenTable looks up a user's own table in the file. Names are not case-sensitive in SQLite.
func (s *adapter) OpenTable(ctx context.Context, want store.Table) (store.UserTable, error) {
	name, err := checkTable(want)
	if err != nil {
		return nil, err
	}
	t := &table{store: s}
	err = store.Retry(ctx, func() error { return s.fault(s.openTable(ctx, t, want, name)) })
	if err != nil {
		return nil, err
	}
	return t, t.statements()
}

func (s *adapter) openTable(ctx context.Context, t *table, want store.Table, name string) error {
	name, strict, err := s.relation(ctx, name)
	if err != nil {
		return err
	}
	t.name = "main." + quote(name)
	if t.all, err = s.columns(ctx, name); err != nil {
		return err
	}
	t.write = make(map[string]*column, len(want.Write))
	for _, n := range want.Write {
		t.write[n] = t.find(n)
	}
	t.cols = columns{t.find(want.ID), t.find(want.Status), t.find(want.Version), t.find(want.Workspace)}
	if err := t.check(want, strict); err != nil {
		return err
	}
	return s.checkUnique(ctx, t, name)
}

// longName is the maximum length of a name; SQLite itself has no limit.
const longName = 255

// checkTable checks the names without the database. A table must be in the file of the engine: a
// transaction over attached files is not atomic in WAL mode.
func checkTable(want store.Table) (name string, err error) {
	schema, name, ok := strings.Cut(want.Name, ".")
	if !ok {
		schema, name = "main", want.Name
	}
	if !strings.EqualFold(schema, "main") || strings.Contains(name, ".") {
		return "", fault.New(fault.Validation, "invalid table name %q: it must be name or main.name, for a table in the engine's database file", want.Name)
	}
	return name, want.Check(longName, strings.EqualFold, name)
}

// relation returns the table's name as it is in the file.
func (s *adapter) relation(ctx context.Context, name string) (found string, strict bool, err error) {
	var kind string
	err = s.read.QueryRowContext(ctx, `SELECT name, type, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE`, name).Scan(&found, &kind, &strict)
	lower := strings.ToLower(found)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, fault.New(fault.Validation, "table %q does not exist in %s: create it, or correct the name", name, s.name)
	case err != nil:
		return "", false, err
	case strings.HasPrefix(lower, "holdfast_") || strings.HasPrefix(lower, "sqlite_"):
		return "", false, fault.New(fault.Validation, "%q belongs to Holdfast or SQLite: use one of your own tables", found)
	case kind != "table":
		return "", false, fault.New(fault.Validation, "%q is not an ordinary table (its type is %s): use an ordinary table", found, kind)
	}
	return found, strict, nil
}

func (s *adapter) columns(ctx context.Context, table string) (all []column, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT name, upper(type), pk, hidden FROM pragma_table_xinfo(?1, 'main') ORDER BY cid`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		var hidden int
		if err := rows.Scan(&c.name, &c.declared, &c.pk, &hidden); err != nil {
			return nil, err
		}
		c.fixed = hidden != 0
		all = append(all, c)
	}
	return all, rows.Err()
}

// find returns the column of a name. An exact match comes first, because SQLite folds only the
// letters of ASCII.
func (t *table) find(name string) *column {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		if i := slices.IndexFunc(t.all, func(c column) bool { return same(c.name, name) }); i >= 0 {
			return &t.all[i]
		}
	}
	return nil
}

// check refuses missing columns, all at once, and columns of an unsuitable type.
func (t *table) check(want store.Table, strict bool) error {
	var missing []string
	for _, name := range append(want.Columns(), want.Write...) {
		if t.find(name) == nil {
			missing = append(missing, quote(name))
		}
	}
	if len(missing) > 0 {
		return fault.New(fault.Validation, "%s has no column %s: add it, or correct the name", t.name, strings.Join(missing, " or "))
	}
	for _, c := range []*column{t.cols.id, t.cols.status, t.cols.workspace} {
		if c != nil && !c.comparable(strict) {
			return fault.New(fault.Validation, "column %q of %s has the type %q, which cannot be compared with text: declare it as TEXT or INTEGER", c.name, t.name, c.declared)
		}
	}
	if v := t.cols.version; !strings.Contains(v.declared, "INT") {
		return fault.New(fault.Validation, "the version column %q of %s has the type %q: declare it as INTEGER", v.name, t.name, v.declared)
	}
	for _, c := range append([]*column{t.cols.status, t.cols.version}, slices.Collect(maps.Values(t.write))...) {
		if c.fixed {
			return fault.New(fault.Validation, "column %q of %s is generated and cannot be written: use another column", c.name, t.name)
		}
	}
	return nil
}

// comparable reports whether the column has an affinity to which a text is converted before it is
// compared. Without one, 7 and '7' are two values.
func (c *column) comparable(strict bool) bool {
	for _, part := range []string{"INT", "CHAR", "CLOB", "TEXT"} {
		if strings.Contains(c.declared, part) {
			return true
		}
	}
	return c.declared != "" && !strings.Contains(c.declared, "BLOB") && !(strict && c.declared == "ANY")
}

// checkUnique requires one row per id, or per workspace and id.
func (s *adapter) checkUnique(ctx context.Context, t *table, name string) error {
	keys, err := s.uniqueKeys(ctx, name)
	if err != nil {
		return err
	}
	var primary []string
	for _, c := range t.all {
		if c.pk > 0 {
			primary = append(primary, c.name)
		}
	}
	workspace := ""
	if t.cols.workspace != nil {
		workspace = t.cols.workspace.name
	}
	names, unique := store.UniqueBy(workspace, t.cols.id.name, append(keys, primary))
	if unique {
		return nil
	}
	for i, n := range names {
		names[i] = quote(n)
	}
	return fault.New(fault.Validation, "the id of %s must be unique: CREATE UNIQUE INDEX %s ON %s (%s)",
		t.name, quote(name+"_id"), quote(name), strings.Join(names, ", "))
}

// uniqueKeys returns the columns of each unique index over all rows. An expression has no name and
// is not a column.
func (s *adapter) uniqueKeys(ctx context.Context, table string) (keys [][]string, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT (SELECT json_group_array(coalesce(x.name, '')) FROM pragma_index_xinfo(i.name, 'main') AS x WHERE x.key = 1)
  FROM pragma_index_list(?1, 'main') AS i WHERE i."unique" = 1 AND i.partial = 0`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var key []string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}
