package configdoc

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// Fields lists the fields that an object of a document may have. A test compares the JSON schema
// with them.
type Fields[T any] struct {
	What     string // the name of the object in messages
	Required []string
	Read     map[string]func(r *Reader, into *T, n *Node, path string)
}

// Read reads an object's fields and refuses unknown ones.
func Read[T any](r *Reader, f *Fields[T], into *T, n *Node, path string) {
	if !r.Is(n, Object, path, f.What+" must be an object") {
		return
	}
	for _, m := range n.Members {
		p := Child(path, m.Name)
		if set, ok := f.Read[m.Name]; ok {
			set(r, into, m.Value, p)
			continue
		}
		r.Refuse(RuleUnknown, p, m.At, "%s has no field %s: the fields are %s", f.What, Show(m.Name), List(slices.Sorted(maps.Keys(f.Read))))
	}
	for _, name := range f.Required {
		if !n.Has(name) {
			r.Refuse(RuleRequired, path, n.At, "%s requires %s: add it", f.What, name)
		}
	}
}

// Is refuses a value of another kind. wants begins the message, such as "x must be a number".
func (r *Reader) Is(n *Node, want Kind, path, wants string) bool {
	if n.Kind != want && n.Kind != Refused {
		r.Refuse(RuleType, path, n.At, "%s, got %s%s", wants, n.Kind, quoted(n, want))
	}
	return n.Kind == want
}

// quoted returns the advice for a string that YAML or JSON reads as another kind.
func quoted(n *Node, want Kind) string {
	if want == Text && (n.Kind == Number || n.Kind == Boolean) {
		return ": put it in quotes"
	}
	return ""
}

// Text reads a string.
func (r *Reader) Text(n *Node, path string) (string, bool) {
	ok := r.Is(n, Text, path, Last(path)+" must be a string")
	return n.Text, ok
}

// Texts reads a list of strings. With single, one string is also allowed.
func (r *Reader) Texts(n *Node, path string, single bool) (all []string) {
	if single && n.Kind != Array {
		if r.Is(n, Text, path, Last(path)+" must be a string or a list of strings") {
			all = append(all, n.Text)
		}
		return all
	}
	if !r.Is(n, Array, path, Last(path)+" must be a list of strings") {
		return nil
	}
	for i, it := range n.Items { // a refused item keeps its index
		s, _ := r.Text(it, Item(path, i))
		all = append(all, s)
	}
	return all
}

// decimal is the only accepted notation of an integer.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// Integer reads an integer in decimal notation. ok is false if it has refused the value.
func (r *Reader) Integer(n *Node, path string) (v int, ok bool) {
	if !r.Is(n, Number, path, Last(path)+" must be an integer") {
		return 0, false
	}
	v, err := strconv.Atoi(n.Text)
	if err != nil || !decimal.MatchString(n.Text) {
		r.Refuse(RuleType, path, n.At, "%s must be an integer in decimal digits, got %s", Last(path), Show(n.Text))
		return 0, false
	}
	return v, true
}
