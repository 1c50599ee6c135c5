package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// OpenTable looks up a user's own table in the catalog. A name without a schema is resolved along
// the search_path, once: from then on the table is named with its schema. Names are case-sensitive.
func (s *adapter) OpenTable(ctx context.Context, want store.Table) (store.UserTable, error) {
	schema, name, err := checkTable(want)
	if err != nil {
		return nil, err
	}
	t := &table{store: s}
	err = store.Retry(ctx, func() error {
		return s.fault(s.bounded(ctx, s.callTimeout, func(ctx context.Context) error { return s.openTable(ctx, t, want, schema, name) }))
	})
	if err != nil {
		return nil, err
	}
	t.statements()
	return t, nil
}

func (s *adapter) openTable(ctx context.Context, t *table, want store.Table, schema, name string) error {
	r, err := s.relation(ctx, schema, name)
	if err != nil {
		return err
	}
	t.name, t.role = pgx.Identifier{r.schema, r.name}.Sanitize(), r.role
	if err := r.check(t, s.schema); err != nil {
		return err
	}
	rows, err := s.pool.Query(ctx, partsText, r.oid)
	if err != nil {
		return err
	}
	if t.parts, err = pgx.CollectRows(rows, pgx.RowTo[uint32]); err != nil {
		return err
	}
	found, err := s.columns(ctx, r.oid, want)
	if err != nil {
		return err
	}
	t.write = make(map[string]*column, len(want.Write))
	for _, n := range want.Write {
		t.write[n] = found[n]
	}
	t.cols = columns{found[want.ID], found[want.Status], found[want.Version], found[want.Workspace]}
	if err := t.check(want); err != nil {
		return err
	}
	written := append([]*column{t.cols.status, t.cols.version}, slices.Collect(maps.Values(t.write))...)
	if !r.update && slices.ContainsFunc(written, func(c *column) bool { return !c.write }) {
		return t.denied("UPDATE ON "+t.name, "it may not change the table")
	}
	return s.checkUnique(ctx, t, r.oid)
}

// longName is the maximum length of a PostgreSQL name, in bytes.
const longName = 63

// checkTable checks the names without the database.
func checkTable(want store.Table) (schema, name string, err error) {
	schema, name, ok := strings.Cut(want.Name, ".")
	if !ok {
		schema, name = "", want.Name
	}
	if ok && schema == "" || strings.Contains(name, ".") {
		return "", "", fault.New(fault.Validation, "invalid table name %q: it must be name or schema.name", want.Name)
	}
	return schema, name, want.Check(longName, func(a, b string) bool { return a == b }, schema, name)
}

// relation is the catalog's entry of a name.
type relation struct {
	oid                 uint32
	schema, name        string
	kind, role          string
	temporary           bool
	usage, read, update bool
	searchPath          string
}

const relationText = `SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence = 't',
       pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.has_table_privilege(c.oid, 'UPDATE')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relname = $2::text AND CASE WHEN $1::text = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1::text END`

// partsText lists a table and all tables that inherit from it. UNION ends the recursion at a table that was already found.
const partsText = `WITH RECURSIVE part AS (
    SELECT $1::oid AS oid
     UNION
    SELECT i.inhrelid FROM part JOIN pg_catalog.pg_inherits AS i ON i.inhparent = part.oid
)
SELECT part.oid FROM part`

func (s *adapter) relation(ctx context.Context, schema, name string) (r relation, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT current_user::text, pg_catalog.current_setting('search_path')`).Scan(&r.role, &r.searchPath); err != nil {
		return r, err
	}
	rows, err := s.pool.Query(ctx, relationText, schema, name)
	if err != nil {
		return r, err
	}
	_, err = pgx.ForEachRow(rows, []any{&r.oid, &r.schema, &r.name, &r.kind, &r.temporary, &r.usage, &r.read, &r.update}, func() error { return nil })
	if err != nil {
		return r, err
	}
	if r.oid == 0 && schema == "" {
		return r, fault.New(fault.Validation, "table %q does not exist in the search_path (%s): create it, name its schema, or GRANT USAGE ON its SCHEMA TO %s", name, r.searchPath, pgx.Identifier{r.role}.Sanitize())
	}
	if r.oid == 0 {
		return r, fault.New(fault.Validation, "table %q does not exist in schema %q: create it, or correct the name (it is case-sensitive)", name, schema)
	}
	return r, nil
}

func (r relation) check(t *table, ours string) error {
	switch {
	case r.schema == ours || r.schema == "pg_catalog" || r.schema == "information_schema":
		return fault.New(fault.Validation, "%s belongs to Holdfast or PostgreSQL: use one of your own tables", t.name)
	case r.kind == "v" || r.kind == "m":
		return fault.New(fault.Validation, "%s is a view: use the underlying table instead", t.name)
	case r.kind != "r" && r.kind != "p":
		return fault.New(fault.Validation, "%s is not a table: use an ordinary or a partitioned table", t.name)
	case r.temporary:
		return fault.New(fault.Validation, "%s is a temporary table, which only one connection can see: use a permanent table", t.name)
	case !r.usage:
		return t.denied("USAGE ON SCHEMA "+pgx.Identifier{r.schema}.Sanitize(), "it may not use the schema")
	case !r.read && !r.update:
		return t.denied("SELECT, UPDATE ON "+t.name, "it may not use the table")
	case !r.read:
		return t.denied("SELECT ON "+t.name, "it may not read all columns of the table")
	}
	return nil
}

// columnsText resolves a domain to its base type, as which its values are compared.
const columnsText = `WITH RECURSIVE c AS (
    SELECT a.attname, a.atttypid AS type, pg_catalog.format_type(a.atttypid, a.atttypmod) AS declared,
           a.attgenerated <> '' OR a.attidentity = 'a' AS fixed, pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'UPDATE') AS write
      FROM pg_catalog.pg_attribute AS a
     WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname::text = ANY ($2::text[])
     UNION ALL
    SELECT c.attname, t.typbasetype, c.declared, c.fixed, c.write FROM c JOIN pg_catalog.pg_type AS t ON t.oid = c.type WHERE t.typtype = 'd'
)
SELECT c.attname::text, c.type, c.declared, c.fixed, c.write, n.nspname::text, t.typname::text, t.typtype::text
  FROM c JOIN pg_catalog.pg_type AS t ON t.oid = c.type JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
 WHERE t.typtype <> 'd'`

func (s *adapter) columns(ctx context.Context, oid uint32, want store.Table) (map[string]*column, error) {
	rows, err := s.pool.Query(ctx, columnsText, oid, append(want.Columns(), want.Write...))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]*column, 4)
	for rows.Next() {
		var c column
		var schema, name, sort string
		if err := rows.Scan(&c.name, &c.oid, &c.declared, &c.fixed, &c.write, &schema, &name, &sort); err != nil {
			return nil, err
		}
		c.kind, c.bits, c.cast = kindOf(schema, name, sort), bits[name], pgx.Identifier{schema, name}.Sanitize()
		c.schema = "pg_catalog" // it has the operators of the built-in types and of all enums; citext, an extension, has its own
		if name == "citext" {
			c.schema = pgx.Identifier{schema}.Sanitize()
		}
		found[c.name] = &c
	}
	return found, rows.Err()
}

// check refuses missing columns, all at once, and columns of an unsuitable type.
func (t *table) check(want store.Table) error {
	var missing []string
	for i, c := range []*column{t.cols.id, t.cols.status, t.cols.version, t.cols.workspace} {
		if names := want.Columns(); i < len(names) && c == nil {
			missing = append(missing, pgx.Identifier{names[i]}.Sanitize())
		}
	}
	for _, n := range want.Write {
		if t.write[n] == nil {
			missing = append(missing, pgx.Identifier{n}.Sanitize())
		}
	}
	if len(missing) > 0 {
		return fault.New(fault.Validation, "%s has no column %s: add it, or correct the name (it is case-sensitive)", t.name, strings.Join(missing, " or "))
	}
	for _, c := range []*column{t.cols.id, t.cols.status, t.cols.workspace} {
		if c != nil && c.kind == otherKind {
			return fault.New(fault.Validation, "column %q of %s has the type %s: an id, a status and a workspace must be an integer type, numeric, uuid, text, varchar, char, citext or an enum", c.name, t.name, c.declared)
		}
	}
	if v := t.cols.version; v.kind != intKind {
		return fault.New(fault.Validation, "the version column %q of %s has the type %s: declare it as bigint", v.name, t.name, v.declared)
	}
	for _, c := range append([]*column{t.cols.status, t.cols.version}, slices.Collect(maps.Values(t.write))...) {
		if c.fixed {
			return fault.New(fault.Validation, "column %q of %s is generated and cannot be written: use another column", c.name, t.name)
		}
	}
	return nil
}

// uniqueText lists the key columns of each unique index that is neither partial nor on expressions. indkey counts
// from 0, and its columns from indnkeyatts on are those of INCLUDE.
const uniqueText = `SELECT ARRAY(SELECT a.attname::text FROM pg_catalog.unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) AS k(n)
             JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.n)
  FROM pg_catalog.pg_index AS i
 WHERE i.indrelid = $1::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL`

// checkUnique requires one row per id, or per workspace and id.
func (s *adapter) checkUnique(ctx context.Context, t *table, oid uint32) error {
	rows, err := s.pool.Query(ctx, uniqueText, oid)
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		return err
	}
	workspace := ""
	if t.cols.workspace != nil {
		workspace = t.cols.workspace.name
	}
	names, unique := store.UniqueBy(workspace, t.cols.id.name, keys)
	if unique {
		return nil
	}
	for i, n := range names {
		names[i] = pgx.Identifier{n}.Sanitize()
	}
	return fault.New(fault.Validation, "the id of %s must be unique: CREATE UNIQUE INDEX ON %s (%s)", t.name, t.name, strings.Join(names, ", "))
}
