package archtest

import (
	"slices"
	"strings"
)

// Time comes into a statement through {now} alone: one expression, with an
// offset that tests can move. A statement that asks the database by itself would
// see another time, and on PostgreSQL mostly that of the transaction's start.

var (
	// timeWords are the time without parentheses.
	timeWords = []string{"current_timestamp", "current_time", "current_date", "localtimestamp", "localtime"}
	// timeCalls are the time as a function, whatever its arguments.
	timeCalls = []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday"}
	// emptyCalls are the time if they are given no argument; with 'now' for one
	// they are too, which the string itself betrays.
	emptyCalls = []string{"datetime", "date", "time", "julianday", "unixepoch", "strftime"}
)

// times reports every place in nodes that asks the database for the time.
func (f *sqlFile) times(s section, nodes []node, remedy string) {
	f.timesWithin(s, nodes, nodes, remedy)
}

func (f *sqlFile) timesWithin(s section, statement, nodes []node, remedy string) {
	for i, n := range nodes {
		if asked := asksTime(nodes, i); asked != "" {
			f.report(n.sqlToken, s, statement, "%s asks for the time: %s", asked, remedy)
		}
		f.timesWithin(s, statement, n.kids, remedy)
	}
}

// asksTime returns the expression at i that asks for the time, or "".
func asksTime(nodes []node, i int) string {
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
