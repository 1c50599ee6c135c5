package lifecycleconfig

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// nonEmpty reads a string that has a default. An empty string is refused, because leaving out the
// field selects the default.
func nonEmpty(r *configdoc.Reader, n *configdoc.Node, path string) (string, bool) {
	s, ok := r.Text(n, path)
	if ok && s == "" {
		r.Refuse("R15", path, n.At, "%s is empty: set it, or leave it out for the default", configdoc.Last(path))
		return "", false
	}
	return s, ok
}

// duration reads a positive duration.
func duration(r *configdoc.Reader, n *configdoc.Node, path string) time.Duration {
	wants := configdoc.Last(path) + ` must be a duration such as "90s" or "5m"`
	if !r.Is(n, configdoc.Text, path, wants) {
		return 0
	}
	d, err := time.ParseDuration(n.Text)
	switch {
	case err != nil:
		r.Refuse(configdoc.RuleType, path, n.At, "%s, got %s", wants, configdoc.Show(n.Text))
		return 0
	case d <= 0:
		r.Refuse("R15", path, n.At, "%s must be positive, got %s", configdoc.Last(path), configdoc.Show(n.Text))
		return 0
	}
	return d
}

// per reads a field of a step: one value, or one by requester.
func per[T any](r *configdoc.Reader, into *Per[T], n *configdoc.Node, path string, one func(*configdoc.Reader, *configdoc.Node, string) (T, bool)) {
	if n.Kind != configdoc.Object {
		if v, ok := one(r, n, path); ok {
			into.All = &v
		}
		return
	}
	if len(n.Members) == 0 {
		r.Refuse(configdoc.RuleType, path, n.At, "%s names no requester: name one, or leave out the field", configdoc.Last(path))
	}
	into.By = make(map[string]T)
	for _, m := range n.Members {
		if v, ok := one(r, m.Value, configdoc.Child(path, m.Name)); ok {
			into.By[m.Name] = v
		}
	}
}
