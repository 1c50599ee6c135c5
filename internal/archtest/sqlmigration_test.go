package archtest

import (
	"maps"
	"slices"
	"strings"
)

// key is a primary key, a unique constraint or an index that a migration creates.
type key struct {
	kind    string // "PRIMARY KEY", "UNIQUE", "INDEX"
	table   string
	columns []string
	at      sqlToken
	in      []node // the statement
	file    *sqlFile
}

// schema is the result of all migrations of one adapter.
type schema struct {
	d      Dialect
	tables map[string]map[string]string // table → column → type
	keys   []key
}

// CheckMigrations checks the migrations of an adapter. files maps their names to their text.
func CheckMigrations(d Dialect, files map[string]string) []Violation {
	s := &schema{d: d, tables: make(map[string]map[string]string)}
	var read []*sqlFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := &sqlFile{d: d, name: name, src: files[name]}
		s.read(f)
		read = append(read, f)
	}
	for _, k := range s.keys {
		s.check(k)
	}
	var found []Violation
	for _, f := range read {
		found = append(found, f.found...)
	}
	return found
}

func (s *schema) read(f *sqlFile) {
	tokens, err := tokenize(f.src)
	if err == nil {
		var all [][]node
		all, err = statements(tokens)
		for _, statement := range all {
			s.statement(f, statement)
			f.defaults(statement, statement)
		}
	}
	if err != nil {
		f.report(sqlToken{line: 1}, section{}, nil, "%v", err)
	}
}

func (s *schema) statement(f *sqlFile, nodes []node) {
	switch keyword(nodes, 0) {
	case "create":
		s.create(f, nodes)
	case "alter", "drop":
		s.alter(f, nodes)
	case "insert", "update", "delete", "select", "with":
		c := &statementCheck{d: s.d, names: true}
		c.found = func(at sqlToken, query []node, format string, args ...any) {
			f.report(at, section{}, query, format, args...)
		}
		c.check(nodes)
	}
}

// create parses CREATE TABLE and CREATE INDEX.
func (s *schema) create(f *sqlFile, nodes []node) {
	unique := false
	for i := 1; i < len(nodes); i++ {
		switch keyword(nodes, i) {
		case "unique":
			unique = true
		case "table":
			s.createTable(f, nodes, skipIf(nodes, i+1))
			return
		case "index":
			s.createIndex(f, nodes, i+1, unique)
			return
		case "temp", "temporary", "unlogged", "local", "global":
		default:
			return
		}
	}
}

// skipIf skips IF [NOT] EXISTS, CONCURRENTLY and ONLY.
func skipIf(nodes []node, i int) int {
	for isKeyword(nodes, i, "if", "not", "exists", "concurrently", "only") {
		i++
	}
	return i
}

// table parses the table name at i. It reports a name in another form than ours.
func (s *schema) table(f *sqlFile, nodes []node, i int) (name string, next int) {
	if i >= len(nodes) {
		return "", i
	}
	t, n := readTable(nodes[i:])
	if t.call {
		n-- // the group is the body of the table, or the columns of an index
	}
	if len(t.parts) == 0 {
		return "", i + n
	}
	table, ok := t.ours(s.d)
	if !ok && t.parts[0].kind == placeholder && t.parts[0].text != "schema" {
		return "", i + n
	}
	if !ok {
		last := t.parts[len(t.parts)-1].text
		f.report(nodes[i].sqlToken, section{}, nodes, "the table name %s has the wrong form: write %s", t.text, s.d.example(last))
		table = last
	}
	return table, i + n
}

// createTable parses the columns and keys of a table. A partition has those of its parent.
func (s *schema) createTable(f *sqlFile, nodes []node, i int) {
	table, i := s.table(f, nodes, i)
	s.references(f, nodes, nodes)
	if isKeyword(nodes, i, "partition") && isKeyword(nodes, i+1, "of") {
		s.table(f, nodes, i+2)
		return
	}
	s.tables[table] = make(map[string]string)
	before := len(s.keys)
	if paren(nodes, i) {
		for _, item := range splitAt(nodes[i].kids, ",") {
			s.tableItem(f, nodes, table, item)
		}
	}
	_, excepted := Excepted[table]
	primary := slices.ContainsFunc(s.keys[before:], func(k key) bool { return k.kind == "PRIMARY KEY" })
	if !primary && !excepted {
		f.report(nodes[0].sqlToken, section{}, nodes, "the table %s has no primary key: add PRIMARY KEY (shard, workspace, …)", table)
	}
}

// tableItem parses a column, or a constraint of the table.
func (s *schema) tableItem(f *sqlFile, statement []node, table string, item []node) {
	i := 0
	if isKeyword(item, 0, "constraint") {
		i = 2
	}
	switch keyword(item, i) {
	case "primary", "unique", "check", "foreign", "exclude", "like":
		s.addKey(f, statement, table, item, i, "")
		return
	}
	column := item[0].text
	s.tables[table][column] = typeOf(item)
	for i := 1; i < len(item); i++ {
		s.addKey(f, statement, table, item, i, column)
	}
}

// typeOf returns the type of a column, in lower case.
func typeOf(item []node) string {
	if len(item) > 1 && item[1].identifier() {
		return strings.ToLower(item[1].text)
	}
	return ""
}

// addKey adds the PRIMARY KEY or UNIQUE at i, if there is one: a table constraint with its own
// columns, or a constraint of the given column.
func (s *schema) addKey(f *sqlFile, statement []node, table string, item []node, i int, column string) {
	k := key{table: table, in: statement, file: f, columns: []string{column}}
	switch {
	case isKeyword(item, i, "primary") && isKeyword(item, i+1, "key"):
		k.kind = "PRIMARY KEY"
	case isKeyword(item, i, "unique"):
		k.kind = "UNIQUE"
	default:
		return
	}
	k.at = item[i].sqlToken
	if column == "" {
		g := slices.IndexFunc(item[i:], func(n node) bool { return n.group })
		if g < 0 {
			return // UNIQUE USING INDEX: the index was checked
		}
		k.columns = columnsOf(item[i+g].kids)
	}
	s.keys = append(s.keys, k)
}

// columnsOf returns the columns of a key. Expressions do not count, except for (shard + 0) and
// (0 + shard), which have the order of shard but are not used for conditions on shard itself.
func columnsOf(nodes []node) []string {
	var columns []string
	for _, item := range splitAt(nodes, ",") {
		name := ""
		if item[0].identifier() && !paren(item, 1) {
			name = item[0].text
		}
		if kids := item[0].kids; len(kids) == 3 && kids[1].text == "+" && (kids[0].text == "shard" && kids[2].text == "0" || kids[0].text == "0" && kids[2].text == "shard") {
			name = "shard"
		}
		columns = append(columns, name)
	}
	return columns
}

// createIndex parses [name] ON table [USING method] (columns).
func (s *schema) createIndex(f *sqlFile, nodes []node, i int, unique bool) {
	for i < len(nodes) && !isKeyword(nodes, i, "on") {
		i++
	}
	table, i := s.table(f, nodes, skipIf(nodes, i+1))
	for i < len(nodes) && !paren(nodes, i) {
		i++
	}
	if i >= len(nodes) {
		return
	}
	k := key{kind: "INDEX", table: table, columns: columnsOf(nodes[i].kids), at: nodes[0].sqlToken, in: nodes, file: f}
	if unique {
		k.kind = "UNIQUE INDEX"
	}
	s.keys = append(s.keys, k)
}

// alter parses the keys and columns that an ALTER TABLE adds.
func (s *schema) alter(f *sqlFile, nodes []node) {
	if !isKeyword(nodes, 1, "table") {
		return
	}
	table, i := s.table(f, nodes, skipIf(nodes, 2))
	if keyword(nodes, 0) == "drop" {
		delete(s.tables, table)
		s.keys = slices.DeleteFunc(s.keys, func(k key) bool { return k.table == table })
		return
	}
	s.references(f, nodes, nodes)
	for _, action := range splitAt(nodes[min(i, len(nodes)):], ",") {
		if isKeyword(action, 0, "add") {
			s.add(f, nodes, table, action[skipAdd(action):])
		}
	}
}

func skipAdd(action []node) int {
	if isKeyword(action, 1, "column") {
		return skipIf(action, 2)
	}
	return 1
}

func (s *schema) add(f *sqlFile, statement []node, table string, item []node) {
	if len(item) == 0 {
		return
	}
	if s.tables[table] == nil {
		s.tables[table] = make(map[string]string)
	}
	s.tableItem(f, statement, table, item)
}

// references checks the table names after REFERENCES.
func (s *schema) references(f *sqlFile, statement, nodes []node) {
	for i, n := range nodes {
		s.references(f, statement, n.kids)
		if isKeyword(nodes, i, "references") {
			s.table(f, nodes, i+1)
		}
	}
}

// check reports a key that does not lead with shard, or that could collide across workspaces.
// A globally unique id needs no workspace.
func (s *schema) check(k key) {
	if _, excepted := Excepted[k.table]; excepted || len(k.columns) == 0 {
		return
	}
	columns := strings.Join(k.columns, ", ")
	if k.columns[0] != "shard" {
		k.file.report(k.at, section{}, k.in, "%s (%s) of %s does not lead with shard: write (shard, …)", k.kind, columns, k.table)
		return
	}
	if k.kind == "INDEX" || slices.Contains(k.columns[1:], "workspace") || s.ownID(k) {
		return
	}
	k.file.report(k.at, section{}, k.in, "%s (%s) of %s does not name the workspace: write (shard, workspace, …), or (shard, id, …) with an id of type uuid or blob",
		k.kind, columns, k.table)
}

// ownID reports whether the second column of the key is one of our ids, which are time-ordered
// and random, so that no two workspaces share one.
func (s *schema) ownID(k key) bool {
	if len(k.columns) < 2 {
		return false
	}
	id := k.columns[1]
	if id != "id" && !strings.HasSuffix(id, "_id") {
		return false
	}
	t := s.tables[k.table][id]
	return t == "uuid" || t == "blob"
}

// defaults reports column defaults that read the time: the statement that writes a row must set
// its time.
func (f *sqlFile) defaults(statement, nodes []node) {
	for i, n := range nodes {
		f.defaults(statement, n.kids)
		if !isKeyword(nodes, i, "default") {
			continue
		}
		end := i + 1
		for end < len(nodes) && !nodes[end].is(punct, ",") {
			end++
		}
		f.timesWithin(section{}, statement, nodes[i+1:end], "set it in the statement that writes the row")
	}
}
