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

// Dialects of the adapters.
const (
	SQLite Dialect = iota
	Postgres
)

// folder returns the folder of the adapter in the module.
func (d Dialect) folder() string {
	if d == Postgres {
		return "postgres"
	}
	return "sqlite"
}

// example returns the name of a table in the form of the dialect.
func (d Dialect) example(table string) string {
	if d == Postgres {
		return "{schema}." + table
	}
	return "holdfast_" + strings.TrimPrefix(table, "holdfast_")
}

// Excepted lists the tables without a shard and a workspace, each with a reason. In all other
// tables every key leads with shard, and every statement is bound to a workspace.
var Excepted = map[string]string{
	"migration":   "it describes the database, not its data",
	"clock":       "a database has one clock",
	"secret":      "a database has one signing key",
	"retention":   "a database is new or not",
	"restore":     "a database has one generation",
	"workspace":   "it is the map from workspace to shard, read before either is known",
	"api_key":     "it has the workspace, and is read before that is known",
	"node":        "a node serves all workspaces",
	"node_minute": "a node serves all workspaces",
}

// Wide lists the verbs that read all workspaces on purpose, each with a reason. In each of their
// queries one table may be without a shard and a workspace; tables joined to it must be tied to
// it.
var Wide = map[string]string{
	"reactions.take":            "one poll serves the reactions of all workspaces on a shard",
	"reactions.list_turns":      "one poll serves the reactions of all workspaces on a shard",
	"reactions.collect_due":     "one poll serves the reactions of all workspaces on a shard",
	"reactions.list_expired":    "one janitor releases expired leases in all workspaces on a shard",
	"reactions.release_expired": "a holder crashes with its leases in all workspaces on a shard",
	"reactions.list_unfinished": "one janitor completes unfinished work in all workspaces on a shard",

	"wake.list_due":          "one query serves all pollers and the janitor of a node, in all workspaces on its shards",
	"registry.sum_revisions": "a node detects declarations in any workspace",

	"entities.list_turns":          "one poll serves the lifecycles of all workspaces on a shard, in turn",
	"batches.list_turns":           "one poll cleans up the items of all workspaces on a shard, in turn",
	"runs.list_turns":              "one poll serves the runs of all workspaces on a shard, in turn",
	"entities.list_expired":        "one janitor releases expired leases in all workspaces on a shard",
	"entities.list_missing_claims": "one janitor finds entities in a claim status without a claim in all workspaces on a shard",
	"entities.list_overdue":        "one janitor withdraws operations that no worker claimed in all workspaces on a shard",
	"entities.take_due":            "one poll resumes the operations of all workspaces on a shard",
	"lifecycles.find_workspace":    "a name belongs to programs or to the API in all workspaces",
	"lifecycles.list_published":    "a node serves the published lifecycles of all workspaces on a shard",
	"lifecycles.list_outdated":     "a program that starts applies its config in all workspaces on a shard",
	"inbox.list_closing_streams":   "leases are found by their end over all workspaces on a shard; those of one are returned",
	"inbox.list_expired_leases":    "leases are found by their end over all workspaces on a shard; those of one are returned",
	"inbox.list_undeleted":         "runs are found by the end of their retention over all workspaces on a shard; those of one are returned",
	"inbox.list_due_handlers":      "handlers with due work are found one by one, in an index over all workspaces on a shard",
	"inbox.count_entries":          "metrics count over all workspaces on a shard",
	"inbox.list_oldest_due":        "metrics have the oldest work of all workspaces on a shard",
	"inbox.list_upcoming":          "for tests: work is found in indexes over all workspaces on a shard; that of one is returned",
	"effects.prune":                "one janitor deletes the effects of ended operations of all workspaces on a shard",
	"refusals.prune":               "one janitor deletes old refusals of all workspaces on a shard",
	"idempotency.prune":            "one janitor deletes expired requests of all workspaces on a shard",
	"refusals.record":              "refusals of several workspaces are recorded together",

	"sessions.prune":                 "one janitor deletes expired sessions of all workspaces on a shard",
	"claim_tokens.prune":             "one janitor deletes old tokens of all workspaces on a shard",
	"handlers.list_url_handlers":     "a node serves the after-effects of all workspaces on a shard",
	"reactions.list_by_handler_kind": "a node serves the reactions of all workspaces on a shard whose handlers it calls",
	"secrets.list_sealed":            "an operator changes the encryption key of all workspaces",
	"webhooks.list_all":              "a node serves the webhooks of all workspaces on a shard",

	"batches.list_ready":    "one poll serves the batches of all workspaces on a shard",
	"batches.list_payable":  "one janitor resumes batches that credits left paused in all workspaces on a shard",
	"batches.list_due":      "one maintenance loop cleans up and closes the batches of all workspaces on a shard",
	"batches.list_prunable": "one janitor deletes the items of old batches of all workspaces on a shard",
	"batches.list_expired":  "one janitor releases expired leases in all workspaces on a shard",

	"runs.list_ready":           "one poll serves the runs of all workspaces on a shard",
	"runs.list_untaken_signals": "one janitor wakes waiting runs in all workspaces on a shard",
	"runs.list_expired":         "one janitor releases expired leases in all workspaces on a shard",
	"runs.list_prunable":        "one janitor deletes the expired runs of all workspaces on a shard",

	"scopes.list_expired": "one janitor deletes the expired scopes of all workspaces on a shard",

	"streams.close_list_expired": "one janitor reopens half-closed streams in all workspaces on a shard",
	"streams.list_deletable":     "one janitor deletes dropped data in all workspaces on a shard",

	"history.prune":        "old history is deleted in the order of time, across workspaces",
	"history.get_page_end": "old history is deleted in the order of time, across workspaces",
	"meta.is_used":         "a database is used or not",

	"check.streams":   "a check reads the whole database",
	"check.events":    "a check reads the whole database",
	"check.entities":  "a check reads the whole database",
	"check.claims":    "a check reads the whole database",
	"check.statuses":  "a check reads the whole database",
	"check.scopes":    "a check reads the whole database",
	"check.batches":   "a check reads the whole database",
	"check.runs":      "a check reads the whole database",
	"check.wallets":   "a check reads the whole database",
	"check.histories": "a check reads the whole database",
	"check.positions": "a check reads the whole database",
	"check.leases":    "a check reads the whole database",
}

// sections are the comments that begin a statement of a SQLite script.
var sections = []string{"look", "do", "then", "also", "each", "else"}

// SQL checks the statements of an adapter, before the schema and the time are filled in.
func SQL(d Dialect, texts map[string]string) []Violation {
	var found []Violation
	for name, src := range texts {
		found = append(found, CheckStatements(d, d.folder()+"/sql/"+name, src)...)
	}
	return sorted(found)
}

// Migrations checks the migrations of both adapters and returns the number of files. The files
// of an adapter are read together, because one may index the table of another.
func Migrations(fsys fs.FS) (found []Violation, read int, err error) {
	for _, d := range []Dialect{SQLite, Postgres} {
		names, err := fs.Glob(fsys, d.folder()+"/migrations/*.sql")
		if err != nil {
			return nil, read, fmt.Errorf("cannot list the migrations: %w", err)
		}
		files := make(map[string]string)
		for _, name := range names {
			src, err := fs.ReadFile(fsys, name)
			if err != nil {
				return nil, read, fmt.Errorf("cannot read a migration: %w", err)
			}
			files[name] = string(src)
		}
		read += len(files)
		found = append(found, CheckMigrations(d, files)...)
	}
	return sorted(found), read, nil
}

// section is the part of a file with one statement.
type section struct {
	name   string // do, then, each, else; "" for the whole file
	tokens []sqlToken
}

func (s section) String() string {
	if s.name == "" {
		return ""
	}
	return "section " + s.name + ": "
}

// sectionsOf splits a SQLite script at its section comments. A file without them, and each
// file of PostgreSQL, is one section.
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

// blank reports whether there are only comments.
func blank(tokens []sqlToken) bool {
	return !slices.ContainsFunc(tokens, func(t sqlToken) bool { return t.kind != comment })
}

// CheckStatements checks one file of statements.
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

// sqlFile collects the violations of one file.
type sqlFile struct {
	d     Dialect
	name  string
	src   string
	found []Violation
}

// report adds a violation with the section and the beginning of the query.
func (f *sqlFile) report(at sqlToken, s section, query []node, format string, args ...any) {
	what := s.String()
	if query != nil {
		what += opening(f.src, query) + ": "
	}
	f.found = append(f.found, Violation{File: f.name, Line: at.line, What: what + fmt.Sprintf(format, args...)})
}

// check checks one section.
func (f *sqlFile) check(s section) {
	all, err := statements(s.tokens)
	if err != nil {
		f.report(firstOf(s.tokens), s, nil, "%v", err)
		return
	}
	if len(all) != 1 {
		f.report(firstOf(s.tokens), s, nil, "has %d statements: write one", len(all))
	}
	for _, statement := range all {
		f.statement(s, statement)
		f.times(s, statement, "take the time from {now}")
	}
}

// unreadable reports statements that the rules do not cover.
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

// verbOf returns the verb of a statement: events.append for postgres/sql/events.append.fast.
func verbOf(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".sql"), ".fast")
}

// SameVerbs reports verbs that one adapter has and the other lacks.
func SameVerbs(sqlite, postgres map[string]string) []Violation {
	found := append(missing(sqlite, postgres, Postgres), missing(postgres, sqlite, SQLite)...)
	for verb := range Wide {
		if sqlite[verb] == "" && postgres[verb] == "" {
			found = append(found, Violation{File: "internal/archtest/sqlrules_checks_test.go", Line: 1,
				What: fmt.Sprintf("Wide lists the verb %s, which no adapter has: remove it", verb)})
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
