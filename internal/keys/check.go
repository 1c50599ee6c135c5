package keys

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Limits of what a caller may give.
const (
	MaxRequesters = 100
	MaxHandlers   = 100
	MaxRate       = 1_000_000
	// MaxTime is the longest lifetime and the longest overlap: ten years.
	MaxTime = 3653 * 24 * time.Hour
)

func (a CreateArgs) check() error {
	if err := strictjson.Text("name", a.Name, events.MaxName); err != nil {
		return err
	}
	if !a.Role.Valid() {
		return wrong("role", "the role is %s, %s, %s or %s", Read, Operate, Worker, Admin)
	}
	if err := checkNames("requester", a.Requesters, MaxRequesters); err != nil {
		return err
	}
	if err := checkNames("handler", a.Handlers, MaxHandlers); err != nil {
		return err
	}
	if len(a.Handlers) > 0 && a.Role != Worker {
		return wrong("handlers", "a key of the role %s cannot be restricted to handlers: only the role %s can", a.Role, Worker)
	}
	if slices.Contains(a.Handlers, Everyone) {
		return wrong("handlers", "%q is no handler: leave handlers out for those of all", Everyone)
	}
	if a.Rate < 0 || a.Rate > MaxRate {
		return wrong("rate", "the rate is %d: it is 0, for the server's default, to %d requests a second", a.Rate, MaxRate)
	}
	if err := checkTime("lifetime", a.Lifetime); err != nil {
		return err
	}
	return checkActor(a.By)
}

func checkNames(what string, all []string, most int) error {
	if len(all) > most {
		return wrong(what+"s", "there are %d %ss, and %d are the most", len(all), what, most)
	}
	seen := make(map[string]bool, len(all))
	for _, name := range all {
		if err := strictjson.Text(what+"s", name, events.MaxName); err != nil {
			return err
		}
		if seen[name] {
			return wrong(what+"s", "the %s %q is given twice", what, name)
		}
		seen[name] = true
	}
	return nil
}

func checkTime(field string, d time.Duration) error {
	if d < 0 || d > MaxTime {
		return wrong(field, "the %s is %s: it is 0 to 10 years", field, d)
	}
	return nil
}

// checkActor wants every change of a key to say whose it is.
func checkActor(by string) error { return strictjson.Text("by", by, events.MaxName) }

func wrong(field, format string, args ...any) error {
	return fault.New(fault.Validation, format, args...).With("field", field)
}
