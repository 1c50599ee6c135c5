package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// account is one invoice: what its callers were told of it, and what the database
// has recorded.
type account struct {
	id      string
	told    []string // its history, from what the callers were told
	won     []string // admins who were told that they did it
	refused int      // tries that were told that another is in progress
	claims  int      // admins who were in the middle of it
	kills   int
	bodies  int
	seen    string // its status after a kill

	history  []lifecycle.Event
	attempts []lifecycle.Refusal
	status   string
	receipt  string
}

// answered notes what an admin was told. Anything but yes, and that another is in
// progress, ends the demo.
func (a *account) answered(who, step string, err error) (done bool, failed error) {
	switch {
	case err == nil:
		a.claims++
		a.won = append(a.won, who)
		a.told = append(a.told, "claimed by "+who, "settled/"+step+" by "+who)
		return true, nil
	case errors.Is(err, holdfast.ErrClaimFailed):
		a.refused++
		return false, nil
	}
	return false, fmt.Errorf("%s, invoice %s: %w", who, a.id, err)
}

// killed notes that an admin was killed in the middle, and what must follow.
func (a *account) killed(who, then string) {
	a.claims++
	a.bodies++
	a.kills++
	a.told = append(a.told, "claimed by "+who, then)
}

func (a *account) winner() string {
	if len(a.won) == 0 {
		return "nobody"
	}
	return strings.Join(a.won, " and ")
}

// code is that of the refusals.
func (a *account) code() string {
	if a.refused == 0 {
		return "not at all: it was free already"
	}
	return string(fault.ClaimFailed)
}

// recorded is the history, as the database has it.
func (a *account) recorded() string { return strings.Join(a.events(), ", ") }

func (a *account) events() []string {
	names := make([]string, len(a.history))
	for i, e := range a.history {
		names[i] = e.Name
		if e.Actor != "" {
			names[i] += " by " + e.Actor
		}
	}
	return names
}

// count is how many events have one of some names.
func (a *account) count(names ...string) (n int) {
	for _, e := range a.history {
		if slices.Contains(names, e.Name) {
			n++
		}
	}
	return n
}

// attempt names a body: there is one for each epoch of an operation.
type attempt struct {
	Operation string `json:"operation"`
	Epoch     int64  `json:"epoch"`
}

// ran are the bodies that have left a trace in the history. To resolve an operation is an epoch, too, of which no body
// ran.
func (a *account) ran() map[attempt]bool {
	all := make(map[attempt]bool)
	for _, e := range a.history {
		if t := attemptOf(e); t.Operation != "" && e.Name != "resumed" {
			all[t] = true
		}
	}
	return all
}

func attemptOf(e lifecycle.Event) (t attempt) {
	_ = json.Unmarshal(e.Data, &t) // what is none has no operation
	return t
}

// lost is how many tries the log of attempts has that were refused for another.
func (a *account) lost() (n int) {
	for _, t := range a.attempts {
		if t.Code == string(fault.ClaimFailed) {
			n++
		}
	}
	return n
}
