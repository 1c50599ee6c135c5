package lifecycles

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields are what an object of the config may have. They are the truth that the
// JSON schema is held to.
type fields[T any] struct {
	what     string // what the object is, for messages
	required []string
	read     map[string]func(r *reader, into *T, n *node, path string)
}

// read reads an object's fields, and refuses those that it does not have.
func read[T any](r *reader, f *fields[T], into *T, n *node, path string) {
	if !r.is(n, object, path, f.what+" is written as fields with values") {
		return
	}
	for _, m := range n.members {
		p := child(path, m.name)
		if set, ok := f.read[m.name]; ok {
			set(r, into, m.value, p)
			continue
		}
		r.refuse(ruleUnknown, p, m.at, "%s has no field %s: it has %s", f.what, show(m.name), list(slices.Sorted(maps.Keys(f.read))))
	}
	for _, name := range f.required {
		if !n.has(name) {
			r.refuse(ruleRequired, path, n.at, "%s needs %s: add it", f.what, name)
		}
	}
}

// has says whether a member was written, be it right or wrong.
func (n *node) has(name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name })
}

// list puts names in a row.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// counted is a number of values, in words.
func counted(n int) string {
	if n == 1 {
		return "1 value"
	}
	return strconv.Itoa(n) + " values"
}

// is refuses a value of another kind.
func (r *reader) is(n *node, want kind, path, wants string) bool {
	if n.kind != want && n.kind != refused {
		r.refuse(ruleType, path, n.at, "%s, and this is %s%s", wants, n.kind, quoted(n, want))
	}
	return n.kind == want
}

// quoted is the advice for a text that YAML or JSON takes for something else.
func quoted(n *node, want kind) string {
	if want == text && (n.kind == number || n.kind == boolean) {
		return ": put it in quotes"
	}
	return ""
}

// text reads a text.
func (r *reader) text(n *node, path string) (string, bool) {
	ok := r.is(n, text, path, last(path)+" is a text")
	return n.text, ok
}

// filled reads a text that has a default, so that an empty one is no way to ask
// for it.
func (r *reader) filled(n *node, path string) (string, bool) {
	s, ok := r.text(n, path)
	if ok && s == "" {
		r.refuse("R15", path, n.at, "%s is empty: fill it in, or leave it out for the default", last(path))
		return "", false
	}
	return s, ok
}

// last is the name at the end of a pointer, for messages.
func last(path string) string { return show(path[strings.LastIndexByte(path, '/')+1:]) }

// texts reads a list of texts, or one that stands alone where alone is allowed.
func (r *reader) texts(n *node, path string, alone bool) (all []string) {
	if alone && n.kind != array {
		if r.is(n, text, path, last(path)+" is a text or a list of texts") {
			all = append(all, n.text)
		}
		return all
	}
	if !r.is(n, array, path, last(path)+" is a list of texts") {
		return nil
	}
	for i, it := range n.items { // a refused one keeps its place
		s, _ := r.text(it, item(path, i))
		all = append(all, s)
	}
	return all
}

// integer reads a whole number, written plainly.
func (r *reader) integer(n *node, path string) int {
	if !r.is(n, number, path, last(path)+" is a whole number") {
		return 0
	}
	v, err := strconv.Atoi(n.text)
	if err != nil || !decimal.MatchString(n.text) {
		r.refuse(ruleType, path, n.at, "%s is a whole number in plain digits, and this is %s", last(path), show(n.text))
	}
	return v
}

// duration reads a positive duration.
func (r *reader) duration(n *node, path string) time.Duration {
	wants := last(path) + ` is a duration such as "90s" or "5m"`
	if !r.is(n, text, path, wants) {
		return 0
	}
	d, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		r.refuse(ruleType, path, n.at, "%s, and this is %s", wants, show(n.text))
		return 0
	case d <= 0:
		r.refuse("R15", path, n.at, "%s has to be longer than nothing, and this is %s", last(path), show(n.text))
		return 0
	}
	return d
}

// per reads a field of a step: bare, or by requester.
func per[T any](r *reader, into *Per[T], n *node, path string, one func(*reader, *node, string) (T, bool)) {
	if n.kind != object {
		if v, ok := one(r, n, path); ok {
			into.All = &v
		}
		return
	}
	if len(n.members) == 0 {
		r.refuse(ruleType, path, n.at, "%s names no requester: name one, or leave the field out", last(path))
	}
	into.By = make(map[string]T)
	for _, m := range n.members {
		if v, ok := one(r, m.value, child(path, m.name)); ok {
			into.By[m.name] = v
		}
	}
}
