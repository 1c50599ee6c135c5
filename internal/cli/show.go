package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast/wire"
)

// table is what a person is shown.
type table struct {
	heads []string // none for a list of facts
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// facts is a table of one thing: what has no value is left out.
func facts(pairs ...string) *table {
	t := &table{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.add(pairs[i], pairs[i+1])
		}
	}
	return t
}

// show shows the last answer, as it came or as a table, unless the call has failed.
func (d *connection) show(t *table, err error) error {
	if err != nil {
		return err
	}
	if d.Output == "json" {
		return writeDocument(d.stdout, d.answer)
	}
	return t.write(d.stdout)
}

func (t *table) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(t.heads) > 0 {
		fmt.Fprintln(w, strings.Join(t.heads, "\t"))
	}
	for _, row := range t.rows {
		for i := range row {
			row[i] = cell(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// showList shows a page of a list, and says where it goes on.
func (d *connection) showList(t *table, next *string, err error) error {
	if err := d.show(t, err); err != nil || next == nil || d.Output == "json" {
		return err
	}
	_, err = fmt.Fprintf(d.stderr, "there is more: --cursor %s\n", *next)
	return err
}

// showLine writes a value as a line of JSON.
func (d *connection) showLine(x any) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return writeDocument(d.stdout, line)
}

// followed shows events as they come, and then how it ended. As JSON each event is a line, and
// there is no more.
func (d *connection) followed(events iter.Seq2[wire.Event, error], each func(wire.Event) error, end func() error) error {
	if d.Output == "json" {
		each, end = func(e wire.Event) error { return d.showLine(e) }, func() error { return nil }
	}
	for e, err := range events {
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return end()
}

// showJSON writes a value as JSON for a person.
func (p *program) showJSON(x any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(x)
}

// writeDocument writes a document and one end of line.
func writeDocument(w io.Writer, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s\n", strings.TrimRight(string(raw), "\n"))
	return err
}

// cell keeps what others wrote from being more than text in a terminal.
func cell(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
		s = s[1 : len(s)-1]
	}
	return s
}

func at(t *wire.Time) string {
	if t == nil {
		return ""
	}
	text, _ := t.MarshalText() // it does not fail
	return string(text)
}

func number64(n int64) string { return strconv.FormatInt(n, 10) }

func ms(m wire.Millis) string { return m.Duration().String() }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// document reads what was given as JSON: the text itself, or @FILE.
func document(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	if path, ok := strings.CutPrefix(text, "@"); ok {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, misuse("%s names a file that cannot be read: %v", flag, err)
		}
		text = string(raw)
	}
	if !json.Valid([]byte(text)) {
		return nil, misuse(`%s wants JSON, such as {"cents": 100}, or @FILE`, flag)
	}
	return json.RawMessage(text), nil
}

// positive refuses a duration that cannot be meant.
func positive(flag string, d time.Duration) error {
	if d < 0 {
		return misuse("%s is negative", flag)
	}
	return nil
}
