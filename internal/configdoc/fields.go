package configdoc

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// Fields are what an object of a document may have. They are the truth that the
// JSON schema is held to.
type Fields[T any] struct {
	What     string // what the object is, for messages
	Required []string
	Read     map[string]func(r *Reader, into *T, n *Node, path string)
}

// Read reads an object's fields, and refuses those that it does not have.
func Read[T any](r *Reader, f *Fields[T], into *T, n *Node, path string) {
	if !r.Is(n, Object, path, f.What+" is written as fields with values") {
		return
	}
	for _, m := range n.Members {
		p := Child(path, m.Name)
		if set, ok := f.Read[m.Name]; ok {
			set(r, into, m.Value, p)
			continue
		}
		r.Refuse(RuleUnknown, p, m.At, "%s has no field %s: it has %s", f.What, Show(m.Name), List(slices.Sorted(maps.Keys(f.Read))))
	}
	for _, name := range f.Required {
		if !n.Has(name) {
			r.Refuse(RuleRequired, path, n.At, "%s needs %s: add it", f.What, name)
		}
	}
}

// Is refuses a value of another kind.
func (r *Reader) Is(n *Node, want Kind, path, wants string) bool {
	if n.Kind != want && n.Kind != Refused {
		r.Refuse(RuleType, path, n.At, "%s, and this is %s%s", wants, n.Kind, quoted(n, want))
	}
	return n.Kind == want
}

// quoted is the advice for a text that YAML or JSON takes for something else.
func quoted(n *Node, want Kind) string {
	if want == Text && (n.Kind == Number || n.Kind == Boolean) {
		return ": put it in quotes"
	}
	return ""
}

// Text reads a text.
func (r *Reader) Text(n *Node, path string) (string, bool) {
	ok := r.Is(n, Text, path, Last(path)+" is a text")
	return n.Text, ok
}

// Texts reads a list of texts, or one that stands alone where alone is allowed.
func (r *Reader) Texts(n *Node, path string, alone bool) (all []string) {
	if alone && n.Kind != Array {
		if r.Is(n, Text, path, Last(path)+" is a text or a list of texts") {
			all = append(all, n.Text)
		}
		return all
	}
	if !r.Is(n, Array, path, Last(path)+" is a list of texts") {
		return nil
	}
	for i, it := range n.Items { // a refused one keeps its place
		s, _ := r.Text(it, Item(path, i))
		all = append(all, s)
	}
	return all
}

// decimal is the one way to write an integer.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// Integer reads a whole number, written plainly.
func (r *Reader) Integer(n *Node, path string) int {
	if !r.Is(n, Number, path, Last(path)+" is a whole number") {
		return 0
	}
	v, err := strconv.Atoi(n.Text)
	if err != nil || !decimal.MatchString(n.Text) {
		r.Refuse(RuleType, path, n.At, "%s is a whole number in plain digits, and this is %s", Last(path), Show(n.Text))
	}
	return v
}
