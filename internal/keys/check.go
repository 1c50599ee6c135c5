package keys

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Limits of a new key.
const (
	MaxRequesters = 100
	MaxHandlers   = 100
	MaxRate       = 1_000_000
	// MaxTime is the maximum lifetime and overlap: ten years.
	MaxTime = 3653 * 24 * time.Hour
)

func (a CreateArgs) check() error {
	if err := strictjson.Text("name", a.Name, events.MaxName); err != nil {
		return err
	}
	if !a.Role.Valid() {
		return wrong("role", "role must be %s, %s, %s or %s, got %q", Read, Operate, Worker, Admin, a.Role)
	}
	if err := CheckRequesters(a.Requesters); err != nil {
		return err
	}
	if err := checkNames("handler", a.Handlers, MaxHandlers); err != nil {
		return err
	}
	if len(a.Handlers) > 0 && a.Role != Worker {
		return wrong("handlers", "a key with the role %s cannot be restricted to handlers: use the role %s", a.Role, Worker)
	}
	if slices.Contains(a.Handlers, Everyone) {
		return wrong("handlers", "%q is not a handler: omit handlers to allow all", Everyone)
	}
	if err := a.checkRestrictions(); err != nil {
		return err
	}
	if a.Rate < 0 || a.Rate > MaxRate {
		return wrong("rate", "rate must be between 0 (the server's default) and %d requests per second, got %d", MaxRate, a.Rate)
	}
	if err := checkTime("lifetime", a.Lifetime); err != nil {
		return err
	}
	return checkActor(a.By)
}

// CheckRequesters refuses invalid requesters.
func CheckRequesters(all []string) error { return checkNames("requester", all, MaxRequesters) }

func checkNames(what string, all []string, most int) error {
	if len(all) > most {
		return wrong(what+"s", "there may be at most %d %ss, got %d", most, what, len(all))
	}
	seen := make(map[string]bool, len(all))
	for _, name := range all {
		if err := strictjson.Text(what+"s", name, events.MaxName); err != nil {
			return err
		}
		if seen[name] {
			return wrong(what+"s", "%s %q is listed twice: keep one of them", what, name)
		}
		seen[name] = true
	}
	return nil
}

func checkTime(field string, d time.Duration) error {
	if d < 0 || d > MaxTime {
		return wrong(field, "%s must be between 0 and 10 years, got %s", field, d)
	}
	return nil
}

// checkActor requires every change of a key to name its actor.
func checkActor(by string) error { return strictjson.Text("by", by, events.MaxName) }

func wrong(field, format string, args ...any) error {
	return fault.New(fault.Validation, format, args...).With("field", field)
}
