package archtest

import (
	"slices"
	"strings"
)

// Statements must read the time only through {now}: one expression with an offset that tests
// can change. Any other expression would return another time, on PostgreSQL usually that of the
// start of the transaction.

var (
	// timeWords are time expressions without parentheses.
	timeWords = []string{"current_timestamp", "current_time", "current_date", "localtimestamp", "localtime"}
	// timeCalls are functions that return the time for any arguments.
	timeCalls = []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday"}
	// emptyCalls are functions that return the time without arguments. With the argument
	// 'now' they do too, which readsTime finds by the string.
	emptyCalls = []string{"datetime", "date", "time", "julianday", "unixepoch", "strftime"}
)

// times reports every expression in nodes that reads the time.
func (f *sqlFile) times(s section, nodes []node, remedy string) {
	f.timesWithin(s, nodes, nodes, remedy)
}

func (f *sqlFile) timesWithin(s section, statement, nodes []node, remedy string) {
	for i, n := range nodes {
		if expr := readsTime(nodes, i); expr != "" {
			f.report(n.sqlToken, s, statement, "%s reads the time: %s", expr, remedy)
		}
		f.timesWithin(s, statement, n.kids, remedy)
	}
}

// readsTime returns the expression at i that reads the time, or "".
func readsTime(nodes []node, i int) string {
	n, k := nodes[i], keyword(nodes, i)
	switch {
	case n.kind == literal && strings.EqualFold(n.text, "now"):
		return "'now'"
	case slices.Contains(timeWords, k):
		return k
	case !paren(nodes, i+1):
		return ""
	case slices.Contains(timeCalls, k), slices.Contains(emptyCalls, k) && len(nodes[i+1].kids) == 0:
		return k + "()"
	}
	return ""
}
