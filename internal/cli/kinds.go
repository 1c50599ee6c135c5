package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scope"
)

// kindForm describes the syntax of a kind in errors.
const kindForm = "write NAME:budget=5s,retries=10,ttl=48h, or some of these options"

// longestTTL is the limit of the engine. Checked here, it fails at startup and not at the
// first change of a scope.
const longestTTL = 100 * 365 * 24 * time.Hour

// scopeKinds returns the part that sets the options of scope kinds.
func scopeKinds(texts []string) (holdfast.Part, error) {
	all, err := parseKinds(texts)
	return scope.Kinds(all...), err
}

// parseKinds parses kinds. Each text has one kind, or several separated by semicolons,
// because an environment variable cannot be repeated.
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
			return nil, misuse("--scope-kind: duplicate kind %q", k.Name)
		}
		seen[k.Name] = true
		all = append(all, k)
	}
	return all, nil
}

// scopeKind parses one kind.
func scopeKind(text string) (k scope.Kind, err error) {
	name, rest, _ := strings.Cut(text, ":")
	if k.Name = strings.TrimSpace(name); k.Name == "" || strings.Contains(k.Name, "/") {
		return k, misuse("--scope-kind: %q has no valid kind name: %s", text, kindForm)
	}
	if strings.TrimSpace(rest) == "" {
		return k, misuse("--scope-kind: %q has no options: %s", text, kindForm)
	}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(rest, ",") {
		option, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			return k, misuse("--scope-kind: %q is not an option for kind %q: %s", option, k.Name, kindForm)
		case seen[option]:
			return k, misuse("--scope-kind: duplicate option %s for kind %q", option, k.Name)
		}
		seen[option] = true
		switch option {
		case "budget":
			k.Budget, err = limit(k.Name, option, value)
		case "ttl":
			k.TTL, err = limit(k.Name, option, value)
		case "retries":
			if k.MaxAttempts, err = retries(k.Name, value); k.MaxAttempts > 0 {
				k.MaxAttempts++ // the first attempt is no retry
			}
		default:
			err = misuse("--scope-kind: unknown option %q for kind %q: the options are budget, retries and ttl", option, k.Name)
		}
		if err != nil {
			return k, err
		}
	}
	return k, nil
}

// unlimited reports whether text means no limit.
func unlimited(text string) bool { return text == "never" || text == "none" }

// limit parses a duration. Less than 0 means no limit. 0 is refused: it would select the
// default.
func limit(kind, option, text string) (time.Duration, error) {
	if unlimited(text) {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil, d == 0:
		return 0, misuse("--scope-kind: %s for kind %q must be a duration such as 5s or 48h, or none for no limit, got %q", option, kind, text)
	case d > longestTTL && option == "ttl":
		return 0, misuse("--scope-kind: ttl for kind %q must be at most 100 years, or never, got %q", kind, text)
	}
	return max(d, -1), nil
}

func retries(kind, text string) (int, error) {
	if unlimited(text) {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n == 0 {
		return 0, misuse("--scope-kind: retries for kind %q must be an integer such as 10, or none for no limit other than the budget, got %q", kind, text)
	}
	return max(n, -1), nil
}
