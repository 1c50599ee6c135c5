package sqlite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/store"
)

// SQLite has no CTE that writes, so a verb is a short script. "do" decides: if
// a row comes back, or is changed where none is asked for, the command won, and the "each" (once a child row) and
// "then" statements follow, which change one row each, and "also", which change any number; if none comes back it lost, and "else" tells what
// was found instead. The answer is the last row that a branch returns. A "look"
// before all that is a read: where it finds nothing there is nothing to do, and
// a command that runs alone does not take the write lock to find that out.
//
// A verb may have a second script, x.fast, for what most often happens. It is
// tried first; where its "do" changes nothing, nothing has happened, and the
// script proper decides and answers.
//
// A verb of one statement needs no section: the file is its "do".
//
// The rejected shape was code for each verb. A script keeps the SQL in one
// file a verb, under the same name as PostgreSQL's, where a test can hold it to
// the rules.
type script struct {
	name   string
	fast   *script
	reads  bool
	look   *statement
	do     statement
	won    []statement // "each" and "then", in order
	lost   []statement // "else"
	answer *statement  // the statement of a won command that gives its answer
	did    bool        // a statement needs what "do" returned
}

type statement struct {
	text string
	each bool
	any  bool // changes any number of rows
	rows bool // returns rows
	// uses are its arguments in order: the nth of the command's, or one of those
	// below. Only these are bound: each that is bound is copied, for each
	// statement. Without a list, all are.
	uses []int
	did  bool // needs what "do" returned
}

// theTime, among a statement's arguments, is the machine's. What is below it is a
// column of the row that "do" returned: -1 is the first.
const theTime = 0

// args returns what a statement is run with.
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

// argument reads the argument that a text begins with, if it does, and how long it is written: ?n, a
// command's nth; :now; or :didn, the nth column of the row that "do" returned.
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

// sections are what a script consists of.
var sections = []string{"look", "do", "then", "also", "each", "else"}

// cutSection returns the lines up to the next section, its kind, and what follows.
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
		return nil, fmt.Errorf("sqlite: %s.sql uses what \"do\" returned, which is nothing", name)
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

// writes tells a statement that writes from one that reads.
func writes(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "INSERT ") || strings.HasPrefix(line, "UPDATE ") || strings.HasPrefix(line, "DELETE ") {
			return true
		}
	}
	return false
}

// all returns every statement of the script, to prepare them.
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

// native makes the driver's values of an argument list.
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
