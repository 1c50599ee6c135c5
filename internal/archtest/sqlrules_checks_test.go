package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Dialect is the SQL of one adapter.
type Dialect uint8

// The two dialects.
const (
	SQLite Dialect = iota
	Postgres
)

// folder is the adapter's, in the module.
func (d Dialect) folder() string {
	if d == Postgres {
		return "postgres"
	}
	return "sqlite"
}

// example shows how the dialect writes a table of ours.
func (d Dialect) example(table string) string {
	if d == Postgres {
		return "{schema}." + table
	}
	return "holdfast_" + strings.TrimPrefix(table, "holdfast_")
}

// Excepted are the tables that belong to no shard and no workspace, each with
// its reason. All others lead every key with shard, and every statement says
// which workspace it speaks of.
var Excepted = map[string]string{
	"migration": "it is about the database, not about what is in it",
	"clock":     "a database has one time",
	"secret":    "a database has one key to sign with",
	"workspace": "it is the map from workspace to shard, read before either is known",
	"api_key":   "it tells the workspace, and is read before that is known",
}

// Wide are the verbs that read all workspaces on purpose, each with its reason.
// In each of their queries one table may stand without a shard and a workspace;
// what is joined to it must be tied to it.
var Wide = map[string]string{
	"reactions.take":       "one poll serves the reactions of all workspaces on a shard",
	"reactions.look":       "one poll serves the reactions of all workspaces on a shard",
	"reactions.gather":     "one poll serves the reactions of all workspaces on a shard",
	"reactions.expired":    "one janitor frees what was left held in all workspaces on a shard",
	"reactions.free":       "a holder crashes with what it had in hand in all workspaces on a shard",
	"reactions.unfinished": "one janitor finishes what was left unfinished in all workspaces on a shard",

	"wake.glance":    "one look serves all pollers and the janitor of a node, in all workspaces on its shards",
	"registry.total": "a node notices what is declared in any workspace",

	"entities.turns":    "one poll serves the lifecycles of all workspaces on a shard, each in its turn",
	"batches.turns":     "one poll cleans up after the items of all workspaces on a shard, each in its turn",
	"runs.turns":        "one poll serves the runs of all workspaces on a shard, each in its turn",
	"entities.expired":  "one janitor frees what was left held in all workspaces on a shard",
	"entities.strays":   "one janitor looks for what is in a claim status by mistake in all workspaces on a shard",
	"entities.overdue":  "one janitor withdraws what no worker came for in all workspaces on a shard",
	"entities.resume":   "one poll resumes the operations of all workspaces on a shard",
	"lifecycles.of":     "a name belongs to programs or to the door in all workspaces",
	"lifecycles.doors":  "a node serves what was put through the API into all workspaces on a shard",
	"lifecycles.behind": "a program that starts brings its config into force in all workspaces on a shard",
	"attempts.prune":    "one janitor forgets old refusals of all workspaces on a shard",
	"requests.prune":    "one janitor forgets requests whose time is over, of all workspaces on a shard",
	"attempts.note":     "refusals in several workspaces are noted together",

	"tokens.prune":      "one janitor forgets old tokens of all workspaces on a shard",
	"handlers.urls":     "a node serves the after-effects of all workspaces on a shard",
	"reactions.handled": "a node serves the reactions of all workspaces on a shard whose handlers it calls",
	"webhooks.all":      "a node serves the webhooks of all workspaces on a shard",

	"batches.ready":   "one poll serves the batches of all workspaces on a shard",
	"batches.paused":  "one janitor resumes what credits have left paused in all workspaces on a shard",
	"batches.due":     "one keeper tears down and closes the batches of all workspaces on a shard",
	"batches.expired": "one janitor frees what was left held in all workspaces on a shard",

	"runs.ready":   "one poll serves the runs of all workspaces on a shard",
	"runs.unheard": "one janitor wakes who sleeps in all workspaces on a shard",
	"runs.expired": "one janitor frees what was left held in all workspaces on a shard",
	"runs.old":     "one janitor deletes the runs of all workspaces on a shard whose time is over",

	"scopes.old": "one janitor ends the scopes of all workspaces on a shard whose time is over",

	"books.expired": "one janitor opens again what was left half closed in all workspaces on a shard",
	"books.left":    "one janitor deletes what was dropped in all workspaces on a shard",

	"history.prune": "old history goes in the order of time, whosever it is",
	"history.page":  "old history goes in the order of time, whosever it is",

	"check.streams":   "a check looks at the whole database",
	"check.events":    "a check looks at the whole database",
	"check.entities":  "a check looks at the whole database",
	"check.claims":    "a check looks at the whole database",
	"check.stranded":  "a check looks at the whole database",
	"check.scopes":    "a check looks at the whole database",
	"check.batches":   "a check looks at the whole database",
	"check.runs":      "a check looks at the whole database",
	"check.wallets":   "a check looks at the whole database",
	"check.histories": "a check looks at the whole database",
	"check.follows":   "a check looks at the whole database",
	"check.holds":     "a check looks at the whole database",
}

// sections are the comments that open a statement of a SQLite script.
var sections = []string{"look", "do", "then", "also", "each", "else"}

// SQL holds the statements of an adapter to the rules, each as the adapter has it
// before the schema and the time are filled in.
func SQL(d Dialect, texts map[string]string) []Violation {
	var found []Violation
	for name, src := range texts {
		found = append(found, CheckStatements(d, d.folder()+"/sql/"+name, src)...)
	}
	return sorted(found)
}

// Migrations holds those of both adapters to the rules, and says how many files it has
// read. They are read together, because one may index the table of another.
func Migrations(fsys fs.FS) (found []Violation, read int, err error) {
	for _, d := range []Dialect{SQLite, Postgres} {
		names, err := fs.Glob(fsys, d.folder()+"/migrations/*.sql")
		if err != nil {
			return nil, read, fmt.Errorf("find migrations: %w", err)
		}
		files := make(map[string]string)
		for _, name := range names {
			src, err := fs.ReadFile(fsys, name)
			if err != nil {
				return nil, read, fmt.Errorf("read a migration: %w", err)
			}
			files[name] = string(src)
		}
		read += len(files)
		found = append(found, CheckMigrations(d, files)...)
	}
	return sorted(found), read, nil
}

// section is one statement's part of a file.
type section struct {
	name   string // do, then, each, else; "" for a whole file
	tokens []sqlToken
}

func (s section) String() string {
	if s.name == "" {
		return ""
	}
	return "section " + s.name + ": "
}

// sectionsOf cuts a SQLite script at its section comments. A file without them
// is one section, and so is each file of PostgreSQL.
func sectionsOf(d Dialect, tokens []sqlToken) []section {
	parts := []section{{}}
	for _, t := range tokens {
		if d == SQLite && t.kind == comment && slices.Contains(sections, strings.ToLower(t.text)) {
			parts = append(parts, section{name: strings.ToLower(t.text)})
		}
		last := &parts[len(parts)-1]
		last.tokens = append(last.tokens, t)
	}
	if len(parts) > 1 && blank(parts[0].tokens) {
		return parts[1:]
	}
	return parts
}

// blank says whether there is nothing but comments.
func blank(tokens []sqlToken) bool {
	return !slices.ContainsFunc(tokens, func(t sqlToken) bool { return t.kind != comment })
}

// CheckStatements holds one file of statements to the rules.
func CheckStatements(d Dialect, name, src string) []Violation {
	tokens, err := tokenize(src)
	if err != nil {
		return []Violation{{File: name, Line: 1, What: err.Error()}}
	}
	f := &sqlFile{d: d, name: name, src: src}
	parts := sectionsOf(d, tokens)
	for _, s := range parts {
		if s.name == "" && len(parts) > 1 {
			f.report(firstOf(s.tokens), s, nil, "SQL before the first section: begin with -- do")
		}
		f.check(s)
	}
	return f.found
}

// sqlFile gathers the violations of one file.
type sqlFile struct {
	d     Dialect
	name  string
	src   string
	found []Violation
}

// report adds a violation that names the section and how the query begins.
func (f *sqlFile) report(at sqlToken, s section, query []node, format string, args ...any) {
	what := s.String()
	if query != nil {
		what += opening(f.src, query) + ": "
	}
	f.found = append(f.found, Violation{File: f.name, Line: at.line, What: what + fmt.Sprintf(format, args...)})
}

// check holds one section to the rules.
func (f *sqlFile) check(s section) {
	all, err := statements(s.tokens)
	if err != nil {
		f.report(firstOf(s.tokens), s, nil, "%v", err)
		return
	}
	if len(all) != 1 {
		f.report(firstOf(s.tokens), s, nil, "holds %d statements: write one", len(all))
	}
	for _, statement := range all {
		f.statement(s, statement)
		f.times(s, statement, "take the time from {now}")
	}
}

// unreadable are statements that the rules cannot be asked of.
var unreadable = []string{"truncate", "merge", "copy", "lock", "table", "replace", "create", "alter", "drop", "vacuum"}

func (f *sqlFile) statement(s section, statement []node) {
	if k := keyword(statement, 0); slices.Contains(unreadable, k) {
		f.report(statement[0].sqlToken, s, statement, "%s is not bound to a workspace: use SELECT, INSERT, UPDATE or DELETE", strings.ToUpper(k))
		return
	}
	_, wide := Wide[verbOf(f.name)]
	c := &statementCheck{d: f.d, wide: wide}
	c.found = func(at sqlToken, query []node, format string, args ...any) {
		f.report(at, s, query, format, args...)
	}
	c.check(statement)
}

func firstOf(tokens []sqlToken) sqlToken {
	if len(tokens) == 0 {
		return sqlToken{line: 1}
	}
	return tokens[0]
}

// verbOf returns the verb that a statement is for: events.append for
// postgres/sql/events.append.fast.
func verbOf(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".sql"), ".fast")
}

// SameVerbs reports verbs that one adapter has and the other lacks.
func SameVerbs(sqlite, postgres map[string]string) []Violation {
	found := append(missing(sqlite, postgres, Postgres), missing(postgres, sqlite, SQLite)...)
	for verb := range Wide {
		if sqlite[verb] == "" && postgres[verb] == "" {
			found = append(found, Violation{File: "internal/archtest/sqlrules_checks_test.go", Line: 1,
				What: fmt.Sprintf("Wide excepts the verb %s, which no adapter has: take it out", verb)})
		}
	}
	return sorted(found)
}

func missing(have, lack map[string]string, d Dialect) []Violation {
	var found []Violation
	for name := range have {
		if verb := verbOf(name); lack[verb] == "" {
			found = append(found, Violation{File: d.folder() + "/sql/" + verb, Line: 1, What: "the other adapter has this verb: add it"})
		}
	}
	return found
}
