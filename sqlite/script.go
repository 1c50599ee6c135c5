package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/store"
)

// script is the SQL of a verb. SQLite has no CTE that writes, so a verb is a short script. "do"
// decides. The command won if "do" returns a row or, for a statement without RETURNING, if it changes one. Then the
// following statements run: "each" (once per child row, such as each event of an append) and "then", which change one
// row each, and "also", which change any number. Otherwise the command lost, and "else" returns what was found
// instead. The result is the last row that a branch returns. A "look" before all that is a read: if
// it finds nothing there is nothing to do, and a command that runs alone does not take the write
// lock.
//
// A verb may have a second script, x.fast, for the most frequent case. It is tried first; if its
// "do" changes nothing, nothing has happened, and the general script decides.
//
// A verb of one statement needs no section: the file is its "do".
//
// Rejected: Go code for each verb. A script keeps the SQL in one file per verb, under the same name
// as PostgreSQL's, where a test can check it against the rules.
type script struct {
	name   string
	fast   *script
	reads  bool // its one statement only reads
	look   *statement
	do     statement
	won    []statement // "each", "then" and "also", in order
	lost   []statement // "else"
	answer *statement  // the statement of a won command that returns the result
	did    bool        // a statement uses the row that "do" returned
}

type statement struct {
	text string
	each bool // runs once per child row
	any  bool // changes any number of rows
	rows bool // returns rows
	// uses are the arguments in order: the index of a command's argument, or one of the values
	// below. Only these are bound, because each bound argument is copied for each statement.
	// Without a list, all are bound.
	uses []int
	did  bool // uses the row that "do" returned
}

// theTime, among a statement's arguments, is the machine's time. A negative number is a column of
// the row that "do" returned: -1 is the first.
const theTime = 0

// args returns the arguments of a statement.
func (st *statement) args(values, did []any, wall *wallClock) []any {
	if st.uses == nil {
		return values
	}
	all := make([]any, len(st.uses))
	for i, n := range st.uses {
		switch {
		case n > theTime:
			all[i] = values[n-1]
		case n < theTime:
			all[i] = did[-n-1]
		default:
			all[i] = wall.ms()
		}
	}
	return all
}

// numbered numbers the arguments that the statement uses, without a gap.
func (st *statement) numbered() {
	st.uses = []int{}
	var out strings.Builder
	text := st.text
	for {
		at := strings.IndexAny(text, "?:")
		if at < 0 {
			break
		}
		n, size, ok := st.argument(text[at:])
		if !ok {
			out.WriteString(text[:at+1])
			text = text[at+1:]
			continue
		}
		i := slices.Index(st.uses, n)
		if i < 0 {
			i = len(st.uses)
			st.uses = append(st.uses, n)
		}
		out.WriteString(text[:at] + "?" + strconv.Itoa(i+1))
		text = text[at+size:]
	}
	st.text = out.String() + text
}

// argument parses the argument at the beginning of a text, if there is one, and returns its length:
// ?n, the nth argument of a command; :now; or :didn, the nth column of the row that "do" returned.
func (st *statement) argument(text string) (n, size int, ok bool) {
	if rest, found := strings.CutPrefix(text, ":now"); found && (rest == "" || !isWord(rest[0])) {
		return theTime, len(":now"), true
	}
	begin := 1
	if strings.HasPrefix(text, ":did") {
		begin = len(":did")
	} else if text[0] == ':' {
		return 0, 0, false
	}
	size = begin
	for size < len(text) && '0' <= text[size] && text[size] <= '9' {
		n = 10*n + int(text[size]-'0')
		size++
	}
	if begin > 1 && size > begin {
		n, st.did = -n, true
	}
	return n, size, size > begin
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// sections are the kinds of section in a script.
var sections = []string{"look", "do", "then", "also", "each", "else"}

// cutSection returns the lines up to the next section, its kind, and the rest.
func cutSection(text string) (before, kind, after string) {
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		next := min(at+len(line)+1, len(text))
		if kind, found := strings.CutPrefix(line, "-- "); found {
			if kind = strings.TrimRight(kind, " \t"); slices.Contains(sections, kind) {
				return text[:at], kind, text[next:]
			}
		}
		at = next
	}
	return text, "", ""
}

func parseScript(name, text string) (*script, error) {
	sc := &script{name: name}
	count := 0
	for _, kind, rest := cutSection(text); kind != ""; count++ {
		body, next, after := cutSection(rest)
		if err := sc.add(kind, strings.TrimSpace(body)); err != nil {
			return nil, err
		}
		kind, rest = next, after
	}
	if count == 0 {
		if err := sc.add("do", strings.TrimSpace(text)); err != nil {
			return nil, err
		}
		count = 1
	}
	if sc.do.text == "" {
		return nil, fmt.Errorf("sqlite: %s.sql has no section \"-- do\"", name)
	}
	sc.reads = sc.do.rows && !writes(sc.do.text) && count == 1
	sc.answer = &sc.do
	for i := range sc.won {
		if sc.won[i].rows {
			sc.answer = &sc.won[i]
		}
		sc.did = sc.did || sc.won[i].did
	}
	if sc.did && !sc.do.rows {
		return nil, fmt.Errorf("sqlite: %s.sql uses the row that \"do\" returns, but \"do\" returns none", name)
	}
	return sc, nil
}

func (sc *script) add(kind, text string) error {
	st := statement{text: text, each: kind == "each", any: kind == "also", rows: returnsRows(text)}
	st.numbered()
	begun := sc.do.text != ""
	switch {
	case text == "" || begun == (kind == "do" || kind == "look"):
		return fmt.Errorf("sqlite: %s.sql: a section %q is empty or out of order", sc.name, kind)
	case kind == "look":
		sc.look = &st
	case kind == "do":
		sc.do = st
	case kind == "else":
		sc.lost = append(sc.lost, st)
	default:
		sc.won = append(sc.won, st)
	}
	return nil
}

func returnsRows(text string) bool {
	return !writes(text) || strings.Contains(text, "RETURNING")
}

// writes reports whether a statement writes.
func writes(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "INSERT ") || strings.HasPrefix(line, "UPDATE ") || strings.HasPrefix(line, "DELETE ") {
			return true
		}
	}
	return false
}

// all returns the statements that run on the writing connection, to prepare them: all except look.
func (sc *script) all() []*statement {
	all := []*statement{&sc.do}
	for i := range sc.won {
		all = append(all, &sc.won[i])
	}
	for i := range sc.lost {
		all = append(all, &sc.lost[i])
	}
	return all
}

// native converts an argument list to the driver's values.
func native(values []any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		if id, ok := v.(store.ID); ok {
			v = id[:]
		}
		out[i] = v
	}
	return out
}

// childList is the argument for all child rows of a command: a JSON list, made if a statement uses it.
type childList struct {
	rows [][]any
	text string
}

// Value implements [driver.Valuer].
func (l *childList) Value() (driver.Value, error) {
	if l.text == "" {
		text, err := json.Marshal(l.rows)
		if err != nil {
			return nil, err
		}
		l.text = string(text)
	}
	return l.text, nil
}
