package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// counts are the sums of the story.
type counts struct {
	bodies, claims, lost, closed, kills, charges, mails, refunds, runs, reminders, decisions, visits, reserved int
}

// tally is the sum of all accounts: as it was told to the callers, and as the
// database has recorded it.
type tally struct {
	told, recorded counts
	closings       map[string]string // invoices by the operation that closed them
	freed, resumed int               // claims that were left, by what became of them
	repeated       int               // charges that the gateway knew again
	wrong          []string
}

// add adds an account, and compares its two sides.
func (t *tally) add(a *account) {
	t.told.bodies += a.bodies
	t.told.claims += a.claims
	t.told.lost += a.refused
	t.told.kills += a.kills
	if a.status == "paid" {
		t.told.charges++
	}
	t.recorded.bodies += len(a.ran())
	t.recorded.claims += a.count("claimed")
	t.recorded.lost += a.lost()
	t.recorded.kills += a.count("recovered", "interrupted")
	t.recorded.closed += a.count("settled/close")
	t.freed += a.count("recovered")
	t.resumed += a.count("interrupted")
	t.remember(a)
	t.compare(a)
}

// remember keeps by which operation an invoice was closed, and how often its
// callers were told so: as many mails must follow.
func (t *tally) remember(a *account) {
	if t.closings == nil {
		t.closings = make(map[string]string)
	}
	for _, e := range a.history {
		if e.Name == "settled/close" {
			t.closings[attemptOf(e).Operation] = a.id
		}
	}
	for _, event := range a.told {
		if strings.HasPrefix(event, "settled/close") {
			t.told.closed++
			t.told.mails++
		}
	}
}

// compare holds an account's history to what its callers were told.
func (t *tally) compare(a *account) {
	if !slices.Equal(a.told, a.events()) {
		t.blame(a.id, fmt.Sprintf("its callers were told %q and the history is %q", a.told, a.events()))
	}
	if n := a.count("settled/close"); n != 1 {
		t.blame(a.id, fmt.Sprintf("it was closed %s", times(n)))
	}
	if a.status != "closed" && a.status != "paid" {
		t.blame(a.id, fmt.Sprintf("it is %q in the end", a.status))
	}
	if a.refused != a.lost() {
		t.blame(a.id, fmt.Sprintf("%d were refused and %d are noted", a.refused, a.lost()))
	}
}

func (t *tally) blame(id, what string) { t.wrong = append(t.wrong, id+": "+what) }

// rows are the lines of the tally.
func (t tally) rows() []row {
	return []row{
		{"bodies run", t.told.bodies, t.recorded.bodies, ""},
		{"claims won", t.told.claims, t.recorded.claims, ""},
		{"claims lost", t.told.lost, t.recorded.lost, "refused before anything was done"},
		{"invoices closed", t.told.closed, t.recorded.closed, ""},
		{"kills, recovered", t.told.kills, t.recorded.kills, fmt.Sprintf("%d freed by the janitor, %d resumed", t.freed, t.resumed)},
		{"charges", t.told.charges, t.recorded.charges, fmt.Sprintf("%d asked for again, and known by the key", t.repeated)},
		{"mails", t.told.mails, t.recorded.mails, "by an after-effect"},
		{"refunds", t.told.refunds, t.recorded.refunds, "of what nobody accepted"},
		{"runs started", t.told.runs, t.recorded.runs, "under one key"},
		{"reminders", t.told.reminders, t.recorded.reminders, "by a step that the run comes back to"},
		{"decisions", t.told.decisions, t.recorded.decisions, "of one approval"},
		{"visits", t.told.visits, t.recorded.visits, "added to one scope at once"},
		{"reservations", t.told.reserved, t.recorded.reserved, "of a credit that is not enough for all"},
	}
}

type row struct {
	what           string
	told, recorded int
	note           string
}

func (t tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-18s %6s %9s\n", "", "told", "recorded")
	for _, r := range t.rows() {
		line := fmt.Sprintf("  %-18s %6d %9d   %s", r.what, r.told, r.recorded, r.note)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "\nduplicates prevented: %d\n", t.recorded.lost)
	return b.String()
}

// check fails where what was told and what is recorded disagree.
func (t tally) check() error {
	wrong := slices.Clone(t.wrong)
	for _, r := range t.rows() {
		if r.told != r.recorded {
			wrong = append(wrong, fmt.Sprintf("%s: %d were told and %d are recorded", r.what, r.told, r.recorded))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fault.New(fault.Internal, "the demo found what must not be: %s", strings.Join(wrong, "; "))
}
