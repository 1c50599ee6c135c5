package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// counts are the totals of the demo.
type counts struct {
	executions, claims, lost, closed, kills, charges, mails, refunds, runs, reminders, decisions, visits, reserved int
}

// tally is the sum of all accounts: as the callers observed it, and as the database recorded it.
type tally struct {
	observed, recorded counts
	closings           map[string]string // invoices by the operation that closed them
	released, resumed  int               // claims of killed callers
	repeated           int               // charges that the gateway recognized by their keys
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
	t.released += a.count("recovered")
	t.resumed += a.count("interrupted")
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

// rows returns the lines of the tally.
func (t tally) rows() []row {
	return []row{
		{"executions", t.observed.executions, t.recorded.executions, ""},
		{"claims won", t.observed.claims, t.recorded.claims, ""},
		{"claims lost", t.observed.lost, t.recorded.lost, "refused before any effect"},
		{"invoices closed", t.observed.closed, t.recorded.closed, ""},
		{"kills recovered", t.observed.kills, t.recorded.kills, fmt.Sprintf("%d released by the janitor, %d resumed", t.released, t.resumed)},
		{"charges", t.observed.charges, t.recorded.charges, fmt.Sprintf("%d repeated, and recognized by the key", t.repeated)},
		{"mails", t.observed.mails, t.recorded.mails, "by an after-effect"},
		{"refunds", t.observed.refunds, t.recorded.refunds, "of unaccepted items"},
		{"runs started", t.observed.runs, t.recorded.runs, "with one key"},
		{"reminders", t.observed.reminders, t.recorded.reminders, "by a step that the run repeats"},
		{"decisions", t.observed.decisions, t.recorded.decisions, "of one approval"},
		{"visits", t.observed.visits, t.recorded.visits, "added to one scope concurrently"},
		{"reservations", t.observed.reserved, t.recorded.reserved, "of a credit too small for all"},
	}
}

type row struct {
	name               string
	observed, recorded int
	note               string
}

func (t tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-18s %9s %9s\n", "", "observed", "recorded")
	for _, r := range t.rows() {
		line := fmt.Sprintf("  %-18s %9d %9d   %s", r.name, r.observed, r.recorded, r.note)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "\nduplicates prevented: %d\n", t.recorded.lost)
	return b.String()
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
