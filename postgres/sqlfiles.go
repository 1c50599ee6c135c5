package postgres

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/sharedsql"
	"github.com/holdfast-go/holdfast/internal/store"
)

func sqlFiles() (store.SQLFiles, error) {
	all := make(store.SQLFiles)
	err := all.Add(files, "sql")
	if err == nil {
		err = sharedsql.Add(all, strings.NewReplacer("{text}", "::text", "{no_time}", "'epoch'", "{pg}", "pg_catalog.", "{size}", "pg_catalog.pg_column_size"))
	}
	return all, err
}

// Files returns the SQL files before arguments and tokens are filled in. In the shared files, the tokens for the
// dialect are already replaced.
func (opener) Files() (store.SQLFiles, error) { return sqlFiles() }

// Filled returns the text of every verb with the tokens that depend on schema and form, such as
// {now}, left in.
func (opener) Filled() (store.Texts, error) {
	texts, err := filled()
	texts = maps.Clone(texts)
	for name, text := range texts {
		texts[name] = strings.ReplaceAll(text, "{due_notices}", written+"{due_notices}")
	}
	return texts, err
}

var filled = sync.OnceValues(func() (store.Texts, error) {
	all, err := sqlFiles()
	if err != nil {
		return nil, err
	}
	return all.Texts(store.Decls(), arguments)
})

var types = map[store.Kind]string{store.ShardKind: "smallint", store.IDKind: "uuid", store.IntKind: "bigint", store.TextKind: "text"}

// arguments returns the arguments of a verb. The general statement of a write takes arrays, which
// {members} turns into one row per member; any other statement takes scalars. Each argument has its
// type, so that the files need no casts.
func arguments(d store.Decl, cols store.Columns, fast bool) store.Filling {
	f := store.Filling{Tokens: make(map[string]string)}
	n := len(cols.Members)
	if d.Lane == store.Write && !fast {
		members := func(where string) string {
			return fmt.Sprintf("m AS (\n    SELECT * FROM %s\n             WITH ORDINALITY AS m(%s, member)%s\n)", unnest(1, cols.Members), names(cols.Members), where)
		}
		if cols.Emits {
			f.Tokens["{members}"] = members("\n     WHERE {current_revision}")
		} else {
			f.Tokens["{members}"] = members("")
			f.Tokens["{members few}"] = members("\n     WHERE m.member + 0 = m.member -- few, for the planner")
		}
		owner := []store.Column{{Name: "owner", Kind: store.IntKind}}
		f.Tokens["{children}"] = children(n+1, append(owner, cols.Children...))
		return f
	}
	f.Tokens["{children}"] = children(n+1, cols.Children)
	f.Arguments = make(map[string]string, n)
	for i, c := range cols.Members {
		f.Arguments[c.Name] = fmt.Sprintf("$%d::%s", i+1, types[c.Kind])
	}
	return f
}

// children returns the rows that belong to members.
func children(first int, cols []store.Column) string {
	return unnest(first, cols) + " AS c(" + names(cols) + ")"
}

func unnest(first int, cols []store.Column) string {
	arrays := make([]string, len(cols))
	for i, c := range cols {
		arrays[i] = fmt.Sprintf("$%d::%s[]", first+i, types[c.Kind])
	}
	return "unnest(" + strings.Join(arrays, ", ") + ")"
}

func names(cols []store.Column) string {
	all := make([]string, len(cols))
	for i, c := range cols {
		all[i] = c.Name
	}
	return strings.Join(all, ", ")
}
