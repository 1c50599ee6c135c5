package archtest

import "strings"

// This file finds every reference to a table of ours in a statement, and the equalities that
// tie it to a shard and a workspace.
//
// A statement is a tree of queries: the main query, its CTEs, its subqueries and the arms of a
// UNION. Each has its own scope, because an alias is valid only inside its query. A reference
// is tied by "a.shard = x". x is anything that is not a table of ours in the same scope (a
// parameter, or a column of a CTE, which was tied in the CTE), or the same column of another
// tied reference. Counting "a.shard =" in the text was rejected: it accepted two tables that
// were joined only with each other, and counted a predicate of one CTE for another.
//
// An equality counts only if it must hold for every row: as a conjunct of a WHERE or an ON, not
// under OR, NOT or CASE, and not in a SET or a select list. The ON of a LEFT JOIN restricts
// only its right side.

// reference is one table of ours in FROM, JOIN, UPDATE, DELETE or USING.
type reference struct {
	table string // without {schema} or holdfast_
	text  string // as written, with the alias
	alias string
	at    sqlToken
}

// tie is an equality on a column of a reference.
type tie struct {
	alias  string
	column string
	other  []node // the other side
}

// scope is one query: its references and the equalities on them.
type scope struct {
	refs []reference
	ties []tie
}

func (s *scope) has(alias string) bool {
	for _, r := range s.refs {
		if r.alias == alias {
			return true
		}
	}
	return false
}

// tied returns the aliases whose column is tied. The aliases in seed count as tied.
func (s *scope) tied(column, seed string) map[string]bool {
	tied := map[string]bool{seed: true}
	for grown := true; grown; {
		grown = false
		for _, t := range s.ties {
			if t.column == column && !tied[t.alias] && s.holds(t, tied) {
				tied[t.alias], grown = true, true
			}
		}
	}
	return tied
}

// holds reports whether a tie is valid: its other side is the same column of a tied reference,
// or has no reference of this scope. "a.shard = coalesce($1, a.shard)" is not a valid tie.
func (s *scope) holds(t tie, tied map[string]bool) bool {
	if alias, column, ok := columnOf(t.other); ok && s.has(alias) {
		return column == t.column && alias != t.alias && tied[alias]
	}
	return !s.mentioned(t.other)
}

// mentioned reports whether a column of a reference occurs in nodes at any depth.
func (s *scope) mentioned(nodes []node) bool {
	for i, n := range nodes {
		if n.group && s.mentioned(n.kids) {
			return true
		}
		if n.identifier() && s.has(n.text) && i+1 < len(nodes) && nodes[i+1].is(punct, ".") {
			return true
		}
	}
	return false
}

// columnOf parses nodes that are exactly alias.column.
func columnOf(nodes []node) (alias, column string, ok bool) {
	if len(nodes) == 5 && nodes[2].text == "shard" && nodes[3].is(punct, "+") && nodes[4].text == "0" { // as columnsOf
		nodes = nodes[:3]
	}
	if len(nodes) == 5 && nodes[0].text == "0" && nodes[1].is(punct, "+") && nodes[4].text == "shard" {
		nodes = nodes[2:]
	}
	if len(nodes) != 3 || !nodes[0].identifier() || !nodes[1].is(punct, ".") || !nodes[2].identifier() {
		return "", "", false
	}
	return nodes[0].text, nodes[2].text, true
}

// addTies adds the equalities of a WHERE or an ON. counts reports which aliases it restricts.
func (s *scope) addTies(condition []node, counts func(alias string) bool) {
	for i := range condition {
		if keyword(condition, i) == "or" {
			return
		}
	}
	for _, c := range split(condition, func(i int) bool { return keyword(condition, i) == "and" }) {
		if len(c) == 1 && paren(c, 0) && !isQuery(c[0].kids) {
			s.addTies(c[0].kids, counts)
			continue
		}
		s.addTie(c, counts)
	}
}

func (s *scope) addTie(conjunct []node, counts func(alias string) bool) {
	sides := split(conjunct, func(i int) bool { return conjunct[i].is(punct, "=") || conjunct[i].is(punct, "==") })
	if len(sides) != 2 || keyword(conjunct, 0) == "not" {
		return
	}
	for i, side := range sides {
		if alias, column, ok := columnOf(side); ok && counts(alias) {
			s.ties = append(s.ties, tie{alias: alias, column: column, other: sides[1-i]})
		}
	}
}

// isQuery reports whether a group is a query, which may begin with another query in parentheses:
// ((SELECT …) UNION (SELECT …)).
func isQuery(nodes []node) bool {
	if paren(nodes, 0) && isQuery(nodes[0].kids) {
		return len(nodes) == 1 || isKeyword(nodes, 1, "union", "except", "intersect", "order", "limit")
	}
	return isKeyword(nodes, 0, "select", "with", "insert", "update", "delete", "values")
}

// cteNames returns the names of all CTEs in the statement.
func cteNames(nodes []node, names map[string]bool) map[string]bool {
	for i, n := range nodes {
		if n.group {
			cteNames(n.kids, names)
		}
		if keyword(nodes, i) == "with" && !isKeyword(nodes, i+1, "ordinality", "ties", "time") {
			nameCTEs(nodes[i+1:], names)
		}
	}
	return names
}

// nameCTEs parses "a AS (…), b (x, y) AS MATERIALIZED (…)".
func nameCTEs(nodes []node, names map[string]bool) {
	for i := 0; i < len(nodes); i++ {
		if keyword(nodes, i) == "recursive" {
			continue
		}
		if !nodes[i].identifier() {
			return
		}
		names[nodes[i].text] = true
		for i++; i < len(nodes) && (paren(nodes, i) || isKeyword(nodes, i, "as", "not", "materialized")); i++ {
		}
		if i >= len(nodes) || !nodes[i].is(punct, ",") {
			return
		}
	}
}

// tableName is the name of a table as written in a statement.
type tableName struct {
	parts []node // without the dots
	text  string
	call  bool // a function that returns rows
}

// ours returns the name of the table without its prefix, if it has the form of our tables.
func (t tableName) ours(d Dialect) (string, bool) {
	if d == Postgres {
		if len(t.parts) == 2 && t.parts[0].is(placeholder, "schema") {
			return t.parts[1].text, true
		}
		return "", false
	}
	if len(t.parts) != 1 {
		return "", false
	}
	return strings.CutPrefix(t.parts[0].text, "holdfast_")
}

// foreign reports whether the name is correctly not one of ours: a CTE, a function, the catalog
// of the database, or a user's table, whose name is filled in.
func (t tableName) foreign(ctes map[string]bool) bool {
	first := t.parts[0]
	switch {
	case t.call:
		return true
	case first.kind == placeholder:
		return first.text != "schema"
	case len(t.parts) == 1 && ctes[first.text]:
		return true
	}
	for _, system := range []string{"pg_", "information_schema", "sqlite_", "pragma_"} {
		if strings.HasPrefix(first.text, system) {
			return true
		}
	}
	return false
}

// readTable parses the table name at the beginning of nodes and returns its number of nodes.
func readTable(nodes []node) (t tableName, n int) {
	for n < len(nodes) && !nodes[n].group && (nodes[n].identifier() || nodes[n].kind == placeholder) {
		t.parts = append(t.parts, nodes[n])
		t.text += written(nodes[n].sqlToken)
		n++
		if n+1 >= len(nodes) || !nodes[n].is(punct, ".") {
			break
		}
		t.text += "."
		n++
	}
	if paren(nodes, n) {
		t.call = true
		n++
	}
	return t, n
}

func written(t sqlToken) string {
	switch t.kind {
	case placeholder:
		return "{" + t.text + "}"
	case quoted:
		return `"` + t.text + `"`
	}
	return t.text
}
