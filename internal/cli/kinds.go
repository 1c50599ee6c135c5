package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scope"
)

// kindForm is how a kind is written.
const kindForm = "write NAME:budget=5s,retries=10,ttl=48h, or some of it"

// longestTTL is what the engine takes, which else would tell whoever changes a scope.
const longestTTL = 100 * 365 * 24 * time.Hour

// scopeKinds is the part that says how scopes of some kinds behave.
func scopeKinds(texts []string) (holdfast.Part, error) {
	all, err := parseKinds(texts)
	return scope.Kinds(all...), err
}

// parseKinds reads kinds. Each text has one, or several with semicolons between them: a
// variable has no other way to have several.
func parseKinds(texts []string) (all []scope.Kind, err error) {
	seen := make(map[string]bool)
	for text := range strings.SplitSeq(strings.Join(texts, ";"), ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		k, err := scopeKind(text)
		if err != nil {
			return nil, err
		}
		if seen[k.Name] {
			return nil, misuse("--scope-kind: the kind %q is there twice", k.Name)
		}
		seen[k.Name] = true
		all = append(all, k)
	}
	return all, nil
}

// scopeKind reads one kind.
func scopeKind(text string) (k scope.Kind, err error) {
	name, rest, _ := strings.Cut(text, ":")
	if k.Name = strings.TrimSpace(name); k.Name == "" || strings.Contains(k.Name, "/") {
		return k, misuse("--scope-kind: %q names no kind: %s", text, kindForm)
	}
	if strings.TrimSpace(rest) == "" {
		return k, misuse("--scope-kind: %q says nothing of its kind: %s", text, kindForm)
	}
	said := make(map[string]bool)
	for part := range strings.SplitSeq(rest, ",") {
		what, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			return k, misuse("--scope-kind: %q of the kind %q is no setting: %s", what, k.Name, kindForm)
		case said[what]:
			return k, misuse("--scope-kind: the %s of the kind %q is there twice", what, k.Name)
		}
		said[what] = true
		switch what {
		case "budget":
			k.Budget, err = limit(k.Name, what, value)
		case "ttl":
			k.TTL, err = limit(k.Name, what, value)
		case "retries":
			if k.MaxAttempts, err = retries(k.Name, value); k.MaxAttempts > 0 {
				k.MaxAttempts++ // the first attempt is no retry
			}
		default:
			err = misuse("--scope-kind: %q of the kind %q is no setting: there are budget, retries and ttl", what, k.Name)
		}
		if err != nil {
			return k, err
		}
	}
	return k, nil
}

// unlimited says that a text stands for no limit.
func unlimited(text string) bool { return text == "never" || text == "none" }

// limit reads a duration; less than 0 is none. 0 would be the default, which nobody means
// who writes it.
func limit(kind, what, text string) (time.Duration, error) {
	if unlimited(text) {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil, d == 0:
		return 0, misuse("--scope-kind: the %s of the kind %q is %q: it is a duration such as 5s or 48h, or none for no limit", what, kind, text)
	case d > longestTTL && what == "ttl":
		return 0, misuse("--scope-kind: the ttl of the kind %q is %q: a hundred years are the most, or never", kind, text)
	}
	return max(d, -1), nil
}

func retries(kind, text string) (int, error) {
	if unlimited(text) {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n == 0 {
		return 0, misuse("--scope-kind: the retries of the kind %q are %q: it is a whole number such as 10, or none for no limit but the budget", kind, text)
	}
	return max(n, -1), nil
}
