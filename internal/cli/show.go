package cli

import (
	"context"
	"encoding/json"
	"errors"
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

// table is the output format for people.
type table struct {
	heads []string // empty for a list of facts
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// facts returns a table of name and value pairs. Pairs with an empty value are omitted.
func facts(pairs ...string) *table {
	t := &table{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.add(pairs[i], pairs[i+1])
		}
	}
	return t
}

// show prints the last response as received (-o json), or t. It returns err if the call failed.
func (d *connection) show(t *table, err error) error {
	if err != nil {
		return err
	}
	if d.Output == "json" {
		return writeDocument(d.stdout, d.response)
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

// showList shows a page of a list, and the cursor of the next page.
func (d *connection) showList(t *table, next *string, err error) error {
	if err := d.show(t, err); err != nil || next == nil || d.Output == "json" {
		return err
	}
	_, err = fmt.Fprintf(d.stderr, "next page: --cursor %s\n", *next)
	return err
}

// showLine writes a value as one line of JSON.
func (d *connection) showLine(x any) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return writeDocument(d.stdout, line)
}

// followed shows events as they arrive and then calls end. With -o json each event is one
// line, and end is not called.
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

// untilCancelled calls each for what arrives until ctx is cancelled, which is not an error.
func untilCancelled[T any](ctx context.Context, all iter.Seq2[T, error], each func(T) error) error {
	for x, err := range all {
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		if err == nil {
			err = each(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showJSON writes a value as indented JSON.
func (p *program) showJSON(x any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(x)
}

// writeDocument writes a document, terminated by one newline.
func writeDocument(w io.Writer, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s\n", strings.TrimRight(string(raw), "\n"))
	return err
}

// cell escapes unprintable characters, so that data cannot control the terminal.
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
	text, _ := t.MarshalText() // never fails
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

// document reads a JSON value: the text itself, or @FILE.
func document(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	if path, ok := strings.CutPrefix(text, "@"); ok {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, misuse("cannot read the file given as %s: %v", flag, err)
		}
		text = string(raw)
	}
	if !json.Valid([]byte(text)) {
		return nil, misuse(`%s must be valid JSON, such as {"cents": 100}, or @FILE`, flag)
	}
	return json.RawMessage(text), nil
}

// notNegative refuses a negative duration.
func notNegative(flag string, d time.Duration) error {
	if d < 0 {
		return misuse("%s must not be negative, got %s", flag, d)
	}
	return nil
}
