package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Texts is the SQL of an adapter by verb, "entities.claim", or by the fast form of a verb, "entities.claim.fast".
type Texts map[string]string

// SQLFiles are the .sql files of an adapter, before arguments are filled in, by name: the file entities/claim.sql is
// entities.claim. docs/sql.md describes their syntax.
type SQLFiles map[string]string

// fragment is the suffix of a file that others include.
const fragment = ".fragment"

// Add reads the .sql files in the folders of a directory. It refuses a duplicate name.
func (f SQLFiles) Add(files fs.FS, dir string) error {
	names, err := fs.Glob(files, path.Join(dir, "*/*.sql"))
	if err != nil {
		return err
	}
	for _, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		if err := f.Put(path.Base(path.Dir(file))+"."+strings.TrimSuffix(path.Base(file), ".sql"), string(text)); err != nil {
			return err
		}
	}
	return nil
}

// Put adds one text.
func (f SQLFiles) Put(name, text string) error {
	if _, twice := f[name]; twice {
		return fmt.Errorf("store: duplicate file %s.sql", name)
	}
	f[name] = text
	return nil
}

// Filling is the text that an adapter substitutes in the files of a verb.
type Filling struct {
	// Arguments maps an argument to the text that replaces :name.
	Arguments map[string]string
	// Tokens maps a token such as {members} to its replacement. In a text with a token, m.name and c.name are
	// columns of the members and of their child rows.
	Tokens map[string]string
}

// Texts expands the files of all verbs. The error names each file with a mistake: an argument that the verb
// does not have, or an argument that none of its files uses.
func (f SQLFiles) Texts(decls []Decl, fill func(d Decl, cols Columns, fast bool) Filling) (Texts, error) {
	texts := make(Texts, len(f))
	var wrong []error
	for _, d := range decls {
		if d.NoWait != "" || f[d.Name] == "" {
			continue // it uses another verb's SQL, or Missing reports it
		}
		cols, used := ColumnsOf(d.Name), make(map[string]bool)
		for _, form := range []string{"", ".fast"} {
			if f[d.Name+form] == "" {
				continue
			}
			e := expansion{files: f, name: d.Name + form, Filling: fill(d, cols, form != ""), used: used}
			texts[d.Name+form] = e.fill()
			wrong = append(wrong, e.wrong...)
		}
		for _, c := range slices.Concat(cols.Members, cols.Children) {
			if !used[c.Name] && !Common(c.Name) {
				wrong = append(wrong, fmt.Errorf("%s.sql does not use :%s: remove the argument from the binder, or add -- unused: %s", d.Name, c.Name, c.Name))
			}
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("store: SQL: %w", errors.Join(wrong...))
	}
	return texts, nil
}

// expansion is the state of expanding one file.
type expansion struct {
	Filling
	files SQLFiles
	name  string
	used  map[string]bool
	wrong []error
}

func (e *expansion) fail(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Errorf("%s.sql: "+format, append([]any{e.name}, args...)...))
}

func (e *expansion) fill() string {
	for line := range strings.Lines(e.files[e.name]) {
		if names, ok := strings.CutPrefix(line, "-- unused: "); ok {
			for name := range strings.SplitSeq(names, ",") {
				e.used[strings.TrimSpace(name)] = true
			}
		}
	}
	text := e.arguments(e.include(e.files[e.name], 0))
	for token, with := range e.Tokens {
		if !strings.Contains(text, token) {
			continue
		}
		for _, m := range rowColumn.FindAllStringSubmatch(text, -1) {
			e.used[m[1]] = true
		}
		text = strings.ReplaceAll(text, token, with)
	}
	return text
}

var rowColumn = regexp.MustCompile(`\b[mc]\.(\w+)`)

// include inserts fragments. {include entities/result_columns e; f} is replaced by the file
// entities/result_columns.fragment.sql, without its leading comments, with e for {1} and f for {2}; {all has_work} is
// replaced by the file has_work.sql of every capability. Each line gets the indent of the first.
func (e *expansion) include(text string, depth int) string {
	if depth > 8 {
		e.fail("fragments include each other")
		return text
	}
	var out strings.Builder
	for text != "" {
		line := until(text, 0, "\n")
		at, d := findDirective(text, line)
		if at < 0 {
			out.WriteString(text[:line])
			text = text[line:]
			continue
		}
		out.WriteString(text[:at])
		if strings.Contains(text[:at], "--") {
			out.WriteString(text[at : at+d.size])
		} else {
			indent := strings.Repeat(" ", utf8.RuneCountInString(text[:at]))
			out.WriteString(strings.ReplaceAll(e.inserted(d, depth), "\n", "\n"+indent))
		}
		text = text[at+d.size:]
		rest := until(text, 0, "\n")
		out.WriteString(text[:rest])
		text = text[rest:]
	}
	return out.String()
}

// directive is {include path given} or {all path}. It is parsed by hand: every start of a program parses all files.
type directive struct {
	kind, path, given string
	size              int
}

// findDirective returns the first directive that begins in the first line of text, and its position, or -1.
func findDirective(text string, line int) (at int, d directive) {
	for at = strings.IndexByte(text[:line], '{'); at >= 0; {
		if d, ok := directiveAt(text[at:]); ok {
			return at, d
		}
		next := strings.IndexByte(text[at+1:line], '{')
		if next < 0 {
			return -1, d
		}
		at += 1 + next
	}
	return at, d
}

func directiveAt(text string) (d directive, ok bool) {
	for _, kind := range []string{"include", "all"} {
		rest, found := strings.CutPrefix(text[1:], kind+" ")
		if !found {
			continue
		}
		for d.size < len(rest) && (word(rest[d.size:]) > 0 || rest[d.size] == '/') {
			d.size++
		}
		d.kind, d.path = kind, rest[:d.size]
		end := closing(rest[d.size:])
		if d.path == "" || end < 0 {
			return d, false
		}
		d.given = rest[d.size : d.size+end]
		d.size += len(text) - len(rest) + end + 1
		return d, true
	}
	return d, false
}

// closing returns the position of the brace that closes the one before text, or -1. In between, braces may be nested once.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			if depth++; depth > 1 {
				return -1
			}
		case '}':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return -1
}

// inserted returns what replaces a directive.
func (e *expansion) inserted(d directive, depth int) string {
	var parts []string
	for _, name := range e.fragments(d.kind, d.path) {
		body := strings.TrimRight(withoutComment(e.files[name]), "\n")
		parts = append(parts, e.include(e.parameters(body, d.given), depth+1))
	}
	return strings.Join(parts, "\n")
}

// withoutComment removes the comments at the start of a fragment.
func withoutComment(text string) string {
	for strings.HasPrefix(text, "--") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

func (e *expansion) fragments(kind, path string) (names []string) {
	if kind == "include" {
		name := strings.ReplaceAll(path, "/", ".") + fragment
		if e.files[name] == "" {
			e.fail("%s.sql does not exist", name)
		}
		return []string{name}
	}
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		if strings.HasSuffix(name, "."+path) {
			names = append(names, name)
		}
	}
	return names
}

// parameters replaces {1} to {9} by the values that a directive gives.
func (e *expansion) parameters(body, given string) string {
	values := strings.Split(given, ";")
	var out strings.Builder
	for {
		at := strings.IndexByte(body, '{')
		if at < 0 || at+2 >= len(body) {
			return out.String() + body
		}
		n := int(body[at+1]) - '1'
		if n < -1 || n > 8 || body[at+2] != '}' {
			out.WriteString(body[:at+1])
			body = body[at+1:]
			continue
		}
		if n < 0 || n >= len(values) || strings.TrimSpace(given) == "" {
			e.fail("a fragment requires the parameter %s", body[at:at+3])
		} else {
			out.WriteString(body[:at] + strings.TrimSpace(values[n]))
		}
		body = body[at+3:]
	}
}

// Missing returns an error that names every declared verb without SQL. An adapter calls it when it opens, so
// that a missing verb is found at startup.
func (t Texts) Missing(decls []Decl) error {
	var missing []string
	for _, d := range decls {
		if t[d.Name] == "" {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("store: no SQL for verbs %s", strings.Join(missing, ", "))
	}
	return nil
}
