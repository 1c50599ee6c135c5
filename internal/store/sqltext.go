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

var (
	rowColumn = regexp.MustCompile(`\b[mc]\.(\w+)`)
	including = regexp.MustCompile(`(?m)^(.*?)\{(include|all) ([\w/]+)((?:[^{}]|\{[^{}]*\})*)\}`)
	parameter = regexp.MustCompile(`\{(\d)\}`)
)

// include inserts fragments. {include entities/result_columns e; f} is replaced by the file
// entities/result_columns.fragment.sql, without its leading comments, with e for {1} and f for {2}; {all has_work} is
// replaced by the file has_work.sql of every capability. Each line gets the indent of the first.
func (e *expansion) include(text string, depth int) string {
	if depth > 8 {
		e.fail("fragments include each other")
		return text
	}
	if !strings.Contains(text, "{include ") && !strings.Contains(text, "{all ") { // most files have none, and the regular expression is slow
		return text
	}
	return including.ReplaceAllStringFunc(text, func(s string) string {
		m := including.FindStringSubmatch(s)
		if strings.Contains(m[1], "--") {
			return s
		}
		var parts []string
		for _, name := range e.fragments(m[2], m[3]) {
			body := strings.TrimRight(leading.ReplaceAllString(e.files[name], ""), "\n")
			body = e.include(e.parameters(body, m[4]), depth+1)
			parts = append(parts, body)
		}
		indent := strings.Repeat(" ", len([]rune(m[1])))
		return m[1] + strings.ReplaceAll(strings.Join(parts, "\n"), "\n", "\n"+indent)
	})
}

// leading matches the comments at the start of a fragment.
var leading = regexp.MustCompile(`\A(--.*\n)+`)

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

func (e *expansion) parameters(body, given string) string {
	values := strings.Split(given, ";")
	return parameter.ReplaceAllStringFunc(body, func(s string) string {
		n := int(s[1] - '1')
		if n < 0 || n >= len(values) || strings.TrimSpace(given) == "" {
			e.fail("a fragment requires the parameter %s", s)
			return s
		}
		return strings.TrimSpace(values[n])
	})
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
