package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// account is one invoice: the results that its callers observed, and the records of the
// database.
type account struct {
	id         string
	observed   []string // the history expected from the results of the callers
	won        []string // admins whose call succeeded
	refused    int      // calls that failed because of another claim
	claims     int      // calls that got the claim
	kills      int
	executions int // of the actions of its steps

	history  []lifecycle.Event
	refusals []lifecycle.Refusal
	status   string
	receipt  string
}

// observe records the result of a call. An error other than CLAIM_FAILED ends the demo.
func (a *account) observe(admin, step string, err error) (done bool, failed error) {
	switch {
	case err == nil:
		a.claims++
		a.won = append(a.won, admin)
		a.observed = append(a.observed, "claimed by "+admin, "settled/"+step+" by "+admin)
		return true, nil
	case errors.Is(err, holdfast.ErrClaimFailed):
		a.refused++
		return false, nil
	}
	return false, fmt.Errorf("%s, invoice %s: %w", admin, a.id, err)
}

// killed records that the process of an admin was killed, and the event that must follow.
func (a *account) killed(admin, next string) {
	a.claims++
	a.executions++
	a.kills++
	a.observed = append(a.observed, "claimed by "+admin, next)
}

// events returns the history that the database recorded.
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

// count returns the number of events with one of the names.
func (a *account) count(names ...string) (n int) {
	for _, e := range a.history {
		if slices.Contains(names, e.Name) {
			n++
		}
	}
	return n
}

// attempt identifies an execution: there is one for each epoch of an operation.
type attempt struct {
	Operation string `json:"operation"`
	Epoch     int64  `json:"epoch"`
}

// ran returns the executions that the history shows. Resolving an operation takes an epoch
// too, but executes nothing.
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
	_ = json.Unmarshal(e.Data, &t) // other events have no operation
	return t
}

// lost returns the number of recorded refusals because of another claim.
func (a *account) lost() (n int) {
	for _, t := range a.refusals {
		if t.Code == fault.ClaimFailed {
			n++
		}
	}
	return n
}
