package lifecycles

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/tree"
)

// filled reads a text that has a default, so that an empty one is no way to ask
// for it.
func filled(r *tree.Reader, n *tree.Node, path string) (string, bool) {
	s, ok := r.Text(n, path)
	if ok && s == "" {
		r.Refuse("R15", path, n.At, "%s is empty: fill it in, or leave it out for the default", tree.Last(path))
		return "", false
	}
	return s, ok
}

// duration reads a positive duration.
func duration(r *tree.Reader, n *tree.Node, path string) time.Duration {
	wants := tree.Last(path) + ` is a duration such as "90s" or "5m"`
	if !r.Is(n, tree.Text, path, wants) {
		return 0
	}
	d, err := time.ParseDuration(n.Text)
	switch {
	case err != nil:
		r.Refuse(tree.RuleType, path, n.At, "%s, and this is %s", wants, tree.Show(n.Text))
		return 0
	case d <= 0:
		r.Refuse("R15", path, n.At, "%s has to be longer than nothing, and this is %s", tree.Last(path), tree.Show(n.Text))
		return 0
	}
	return d
}

// per reads a field of a step: bare, or by requester.
func per[T any](r *tree.Reader, into *Per[T], n *tree.Node, path string, one func(*tree.Reader, *tree.Node, string) (T, bool)) {
	if n.Kind != tree.Object {
		if v, ok := one(r, n, path); ok {
			into.All = &v
		}
		return
	}
	if len(n.Members) == 0 {
		r.Refuse(tree.RuleType, path, n.At, "%s names no requester: name one, or leave the field out", tree.Last(path))
	}
	into.By = make(map[string]T)
	for _, m := range n.Members {
		if v, ok := one(r, m.Value, tree.Child(path, m.Name)); ok {
			into.By[m.Name] = v
		}
	}
}
