package lifecycleconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// afterEffects checks R16.
func (l *linter) afterEffects() {
	for _, name := range slices.Sorted(maps.Keys(l.c.AfterEffects)) {
		path := configdoc.Child("/after_effects", name)
		if !l.Partial() && !slices.ContainsFunc(l.c.Steps, func(s Step) bool { return s.AfterEffect.names(name) }) {
			l.Refuse("R16", path, "no step has the success_after_effect %s: correct the name, or remove this entry", configdoc.Show(name))
		}
		l.afterEffect(path, l.c.AfterEffects[name])
	}
}

func (l *linter) afterEffect(path string, a AfterEffect) {
	l.positive(configdoc.Child(path, "backoff"), a.Backoff)
	l.positive(configdoc.Child(path, "max_backoff"), a.MaxBackoff)
	l.among(configdoc.Child(path, "on_refusal"), a.OnRefusal, Retry, Block)
	l.among(configdoc.Child(path, "on_missing"), a.OnMissing, Block, Skip)
	if a.MaxAttempts < 0 || a.MaxAttempts > MaxAttempts {
		l.Refuse("R16", configdoc.Child(path, "max_attempts"), "max_attempts must be between 1 and %d, got %d", MaxAttempts, a.MaxAttempts)
	}
	if f := a.Filled(); f.Backoff > f.MaxBackoff || f.MaxBackoff > LongestBackoff {
		at := configdoc.Child(path, "max_backoff")
		if a.MaxBackoff == 0 {
			at = configdoc.Child(path, "backoff")
		}
		l.Refuse("R16", at, "max_backoff must be at least backoff and at most a year, got backoff %v and max_backoff %v", f.Backoff, f.MaxBackoff)
	}
}

// among refuses a word that is not one of words; "" means the default.
func (l *linter) among(path, word string, words ...string) {
	if word != "" && !slices.Contains(words, word) {
		l.Refuse("R16", path, "%s must be %s, got %s", configdoc.Last(path), strings.Join(words, " or "), configdoc.Show(word))
	}
}

// names reports whether a field of a step has a value for any requester.
func (p Per[T]) names(v string) bool {
	for _, u := range uses("", p) {
		if any(u.value) == v {
			return true
		}
	}
	return false
}
