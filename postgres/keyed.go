package postgres

import (
	"regexp"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/store"
)

// loadTexts returns the statements in one form.
func loadTexts(tokens *strings.Replacer) (store.Texts, error) {
	raw, err := rawTexts()
	texts := make(store.Texts, len(raw))
	for name, text := range raw {
		texts[name] = tokens.Replace(text)
	}
	return texts, err
}

// rawTexts reads the files, once a process.
var rawTexts = sync.OnceValues(func() (store.Texts, error) {
	texts, err := store.LoadTexts(files, "sql", strings.NewReplacer())
	for name, text := range texts {
		texts[name] = keyed(text)
	}
	return texts, err
})

// keyed rewrites the joins of a statement so that every plan looks rows up by their keys.
//
// A plan is made once, perhaps when a table had no rows or when ANALYZE had last seen none. For such a table a walk along the whole
// index and a join filter cost as much as a lookup by key, and PostgreSQL takes either. It walks an index only where its order might
// be of use: to a merge join, or to an ORDER BY. So shard, the first column of every key, is compared by = ANY, which no merge join can
// use, and rows that are locked in the order of their keys are sorted. Only the lookup is left.
//
// A subquery that has one table alone (LATERAL … LIMIT 1, FOR UPDATE) is a lookup as it stands, and may need the order. Where the
// planner could choose the wrong index, the statement says so (docs/decisions/030). keyed_test.go holds every statement to its keys.
func keyed(text string) string {
	tables := map[string]bool{}
	for _, m := range aliases.FindAllStringSubmatch(text, -1) {
		tables[m[1]] = true
	}
	list := strings.Contains(text, "unnest($1::smallint[]")
	var b strings.Builder
	done := 0
	for _, at := range joined.FindAllStringSubmatchIndex(text, -1) {
		left, right := text[at[2]:at[3]], text[at[4]:at[5]]
		m := alone.FindStringSubmatch(text[max(0, at[0]-200):at[0]])
		if !tables[left] || tables[right] && !list || m != nil && m[1] != "1" && m[2] == left {
			continue
		}
		b.WriteString(text[done:at[0]] + left + ".shard = ANY (ARRAY[" + right + ".shard])")
		done = at[1]
	}
	return locking.ReplaceAllString(b.String()+text[done:], "ORDER BY $1.shard * 1,$2")
}

var (
	aliases = regexp.MustCompile(`(?:FROM|JOIN|UPDATE|INTO|USING) {schema}\.\w+ (?:AS )?(\w+)`)
	joined  = regexp.MustCompile(`\b(\w+)\.shard = (\w+)\.shard\b`)
	alone   = regexp.MustCompile(`(\S+)\s+FROM {schema}\.\w+ (\w+)\s+WHERE $`) // just before the comparison; EXISTS (SELECT 1 …) may become a join
	locking = regexp.MustCompile(`ORDER BY (\w+)\.shard,([^\n]*\n\s*FOR )`)
)
