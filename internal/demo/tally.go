package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// counts are the totals of the demo.
type counts struct {
	executions, claims, lost, closed, kills, charges, transfers, mails, refunds, runs, decisions, accounts, visits, reserved, booked int
}

// tally is the sum of all accounts: as the callers observed it, and as the database recorded it.
type tally struct {
	observed, recorded counts
	closings           map[string]string // invoices by the operation that closed them
	redelivered        int               // deliveries that changed nothing
	mismatches         []string
}

// add adds an account and compares its observed results with its records.
func (t *tally) add(a *account) {
	t.observed.executions += a.executions
	t.observed.claims += a.claims
	t.observed.lost += a.refused
	t.observed.kills += a.kills
	if a.status == "paid" {
		t.observed.charges++
	}
	t.recorded.executions += len(a.ran())
	t.recorded.claims += a.count("claimed")
	t.recorded.lost += a.lost()
	t.recorded.kills += a.count("recovered", "interrupted")
	t.recorded.closed += a.count("settled/close")
	t.remember(a)
	t.compare(a)
}

// remember stores the operation that closed an invoice, and counts the closes that callers
// observed. Each close must send one mail.
func (t *tally) remember(a *account) {
	if t.closings == nil {
		t.closings = make(map[string]string)
	}
	for _, e := range a.history {
		if e.Name == "settled/close" {
			t.closings[attemptOf(e).Operation] = a.id
		}
	}
	for _, event := range a.observed {
		if strings.HasPrefix(event, "settled/close") {
			t.observed.closed++
			t.observed.mails++
		}
	}
}

// compare compares the history of an account with the results that its callers observed.
func (t *tally) compare(a *account) {
	if !slices.Equal(a.observed, a.events()) {
		t.mismatch(a.id, fmt.Sprintf("the callers observed %q, but the history is %q", a.observed, a.events()))
	}
	if n := a.count("settled/close"); n != 1 {
		t.mismatch(a.id, fmt.Sprintf("the invoice was closed %s", times(n)))
	}
	if a.status != "closed" && a.status != "paid" {
		t.mismatch(a.id, fmt.Sprintf("the final status is %q", a.status))
	}
	if a.refused != a.lost() {
		t.mismatch(a.id, fmt.Sprintf("%d calls were refused, but %d refusals are recorded", a.refused, a.lost()))
	}
}

// mismatch records a difference that fails the demo.
func (t *tally) mismatch(id, text string) { t.mismatches = append(t.mismatches, id+": "+text) }

// rows returns the counts.
func (t tally) rows() []row {
	o, r := t.observed, t.recorded
	return []row{
		{"executions", o.executions, r.executions},
		{"claims won", o.claims, r.claims},
		{"claims lost", o.lost, r.lost},
		{"invoices closed", o.closed, r.closed},
		{"kills recovered", o.kills, r.kills},
		{"charges", o.charges, r.charges},
		{"transfers", o.transfers, r.transfers},
		{"mails", o.mails, r.mails},
		{"refunds", o.refunds, r.refunds},
		{"runs started", o.runs, r.runs},
		{"decisions", o.decisions, r.decisions},
		{"accounts opened", o.accounts, r.accounts},
		{"visits", o.visits, r.visits},
		{"reservations", o.reserved, r.reserved},
		{"payments booked", o.booked, r.booked},
	}
}

type row struct {
	name               string
	observed, recorded int
}

func (t tally) String() string {
	return fmt.Sprintf("%d counts of the callers equal those of the database; duplicates prevented: %d", len(t.rows()), t.recorded.lost+t.redelivered)
}

// check returns an error if the observed results and the records differ.
func (t tally) check() error {
	mismatches := slices.Clone(t.mismatches)
	for _, r := range t.rows() {
		if r.observed != r.recorded {
			mismatches = append(mismatches, fmt.Sprintf("%s: %d observed, but %d recorded", r.name, r.observed, r.recorded))
		}
	}
	if len(mismatches) == 0 {
		return nil
	}
	return fault.New(fault.Internal, "the demo found differences between observed and recorded results: %s", strings.Join(mismatches, "; "))
}
