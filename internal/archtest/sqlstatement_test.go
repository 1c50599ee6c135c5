package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// statementCheck checks one statement.
type statementCheck struct {
	d     Dialect
	ctes  map[string]bool
	wide  bool // the statement may read all workspaces: see [Wide]
	names bool // only table names are checked, as in migrations
	found func(at sqlToken, query []node, format string, args ...any)
}

// check checks the statement and every query in it.
func (c *statementCheck) check(statement []node) {
	c.ctes = cteNames(statement, make(map[string]bool))
	c.query(statement)
}

// query checks one query, after the queries inside it.
func (c *statementCheck) query(nodes []node) {
	c.nested(nodes)
	l := &level{c: c, nodes: nodes, query: nodes, scope: &scope{}}
	l.read()
	l.close()
	if !c.names && l.write != "" && !l.where {
		c.found(nodes[0].sqlToken, nodes, "%s without a WHERE: select the rows", strings.ToUpper(l.write))
	}
}

func (c *statementCheck) nested(nodes []node) {
	for _, n := range nodes {
		if n.group && isQuery(n.kids) {
			c.query(n.kids)
		} else {
			c.nested(n.kids)
		}
	}
}

// level is the parser state of one query, without its groups.
type level struct {
	c        *statementCheck
	nodes    []node
	query    []node // the whole query, for reports
	p        int
	scope    *scope
	write    string // update or delete, if the query is one
	where    bool
	inFrom   bool // a table follows after a comma
	conflict bool // after ON CONFLICT, where conditions apply to the target only

	join   string // inner, left, right, full: of the last JOIN
	joined int    // number of references before it
}

func (l *level) read() {
	for l.p < len(l.nodes) {
		l.step()
	}
}

// step parses the keyword of a clause and its operands.
func (l *level) step() {
	k := keyword(l.nodes, l.p)
	l.p++
	switch {
	case k == "" && l.inFrom && l.nodes[l.p-1].is(punct, ","):
		l.tables()
	case k == "union" || k == "except" || k == "intersect":
		l.close()
		l.scope, l.inFrom = &scope{}, false
	case k == "delete" && !l.before("on"):
		l.write = k
	case k == "update" && !l.before("for", "key", "do", "on"):
		l.write = k
		l.table()
	case k == "from" && !l.before("distinct"), k == "using" && l.write == "delete" && l.join == "":
		l.inFrom = true
		l.tables()
	case k == "join":
		l.join, l.joined = l.joinKind(), len(l.scope.refs)
		l.table()
	case k == "into":
		l.target()
	case k == "on" && isKeyword(l.nodes, l.p, "conflict"):
		l.conflict = true
	case k == "on":
		l.condition(l.restricts)
	case k == "where":
		l.inFrom = false
		l.condition(func(string) bool { return !l.conflict })
		l.where = true
	case slices.Contains([]string{"select", "set", "group", "order", "having", "limit", "returning", "window", "for"}, k):
		l.inFrom = false
	}
}

// before reports whether one of the words precedes the keyword just read.
func (l *level) before(words ...string) bool { return isKeyword(l.nodes, l.p-2, words...) }

// joinKind returns the kind of a JOIN from the preceding keywords.
func (l *level) joinKind() string {
	i := l.p - 2
	if isKeyword(l.nodes, i, "outer") {
		i--
	}
	if isKeyword(l.nodes, i, "left", "right", "full") {
		return l.nodes[i].text
	}
	return "inner"
}

// restricts reports whether the ON of the last JOIN restricts the rows of alias.
func (l *level) restricts(alias string) bool {
	right := (&scope{refs: l.scope.refs[l.joined:]}).has(alias)
	switch l.join {
	case "left":
		return right
	case "right":
		return !right
	case "full":
		return false
	}
	return true
}

func (l *level) condition(counts func(alias string) bool) {
	start := l.p
	for l.p < len(l.nodes) && !l.clauseEnds() {
		l.p++
	}
	l.scope.addTies(l.nodes[start:l.p], counts)
}

func (l *level) clauseEnds() bool {
	if l.inFrom && l.nodes[l.p].is(punct, ",") {
		return true
	}
	switch keyword(l.nodes, l.p) {
	case "left", "right", "full", "inner", "cross", "natural":
		return isKeyword(l.nodes, l.p+1, "join", "outer", "left", "right", "full", "inner")
	case "from":
		return !isKeyword(l.nodes, l.p-1, "distinct")
	case "join", "on", "where", "group", "order", "having", "limit", "offset", "fetch", "returning",
		"for", "window", "union", "except", "intersect", "set", "select", "values", "using", "do":
		return true
	}
	return false
}

// tables parses a list of tables up to a JOIN or an ON.
func (l *level) tables() {
	for l.table(); l.p < len(l.nodes) && l.nodes[l.p].is(punct, ","); l.table() {
		l.p++
	}
}

// table parses one table with its alias. A group is either a query, which was checked already,
// or joined tables, which belong to this scope.
func (l *level) table() {
	for isKeyword(l.nodes, l.p, "lateral", "only", "or", "rollback", "abort", "fail", "ignore", "replace") {
		l.p++
	}
	if paren(l.nodes, l.p) {
		kids := l.nodes[l.p].kids
		l.p++
		if !isQuery(kids) {
			inside := &level{c: l.c, nodes: kids, query: l.query, scope: l.scope, inFrom: true}
			inside.tables()
			inside.read()
		}
		l.alias()
		return
	}
	at := l.p
	if t, ok := l.name(); ok {
		alias := l.alias()
		l.scope.refs = append(l.scope.refs, reference{table: t, alias: alias, text: l.text(at), at: l.nodes[at].sqlToken})
		return
	}
	l.alias()
}

// target parses the table of an INSERT.
func (l *level) target() {
	l.name()
	l.alias()
}

// name parses a table name and returns it if it is one of ours. It reports a name that is neither
// ours nor correctly foreign.
func (l *level) name() (string, bool) {
	if l.p >= len(l.nodes) {
		return "", false
	}
	at := l.nodes[l.p].sqlToken
	t, n := readTable(l.nodes[l.p:])
	if isKeyword(l.nodes, l.p-1, "into") {
		t.call = false // the columns of an INSERT
	}
	l.p += n
	if len(t.parts) == 0 {
		return "", false
	}
	if table, ok := t.ours(l.c.d); ok && !t.call {
		return table, true
	}
	if !t.foreign(l.c.ctes) {
		l.c.found(at, l.query, "the table name %s has the wrong form: write %s", t.text, l.c.d.example(t.parts[len(t.parts)-1].text))
	}
	return "", false
}

// alias parses [AS] alias [(columns)], and the suffixes of a function call.
func (l *level) alias() string {
	if isKeyword(l.nodes, l.p, "with") && isKeyword(l.nodes, l.p+1, "ordinality") {
		l.p += 2
	}
	named := isKeyword(l.nodes, l.p, "as")
	if named {
		l.p++
	}
	if l.p >= len(l.nodes) || !l.nodes[l.p].identifier() || l.nodes[l.p].group || !named && l.endsTable() {
		return ""
	}
	alias := l.nodes[l.p].text
	l.p++
	if paren(l.nodes, l.p) {
		l.p++
	}
	return alias
}

// endsTable reports whether the current word cannot be an alias.
func (l *level) endsTable() bool {
	return l.clauseEnds() || isKeyword(l.nodes, l.p,
		"left", "right", "full", "inner", "cross", "natural", "default", "indexed", "not", "tablesample", "with", "overriding")
}

// text returns the nodes from at to the current position as written.
func (l *level) text(at int) string {
	t, n := readTable(l.nodes[at:l.p])
	text := t.text
	for _, n := range l.nodes[at+n : l.p] {
		if !n.group {
			text += " " + written(n.sqlToken)
		}
	}
	return text
}

// close checks the scope: every table of ours in it must have an alias, a shard and a workspace.
func (l *level) close() {
	if l.c.names {
		return
	}
	var held []reference
	for _, r := range l.scope.refs {
		if _, excepted := Excepted[r.table]; excepted {
			continue
		}
		if r.alias == "" {
			l.c.found(r.at, l.query, "%s has no alias: write %q and qualify its columns", r.text, r.text+" "+r.table[:min(1, len(r.table))])
			continue
		}
		held = append(held, r)
	}
	for _, column := range []string{"shard", "workspace"} {
		l.demand(held, column)
	}
}

// demand reports the references whose column is not tied. A wide statement may leave one
// reference untied; the others must be tied to it.
func (l *level) demand(held []reference, column string) {
	tied, free := l.scope.tied(column, ""), l.c.wide
	for _, r := range held {
		if tied[r.alias] {
			continue
		}
		if free {
			tied, free = l.scope.tied(column, r.alias), false
			continue
		}
		l.c.found(r.at, l.query, "%s is not bound to a %s: add %q to its WHERE or ON",
			r.text, column, fmt.Sprintf("%s.%s = …", r.alias, column))
	}
}
