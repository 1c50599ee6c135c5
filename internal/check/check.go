// Package check verifies the invariants that can be checked on the rows of a database.
//
//	report, err := check.Run(ctx, engine)
//
// It reads every shard and every workspace and changes nothing. Each verb returns the results of one page: the
// rows that violate an invariant, and always the last row, after which the next page begins. One statement sees
// one consistent state of a stream's head and its events, so a check may run during writes. A page costs the same
// wherever it is, and is followed by a pause, so that a check leaves most of the database's capacity to the nodes.
//
// Rejected: one statement over everything. On a large database it would hit the time limits that keep a stuck
// statement from blocking others.
package check

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// page is how many rows one statement checks.
	page = 1000
	// period is the longest time of a page with its pause, unless the page alone takes longer: a million rows of one kind
	// then take less than two minutes.
	period = 100 * time.Millisecond
	// MostListed is how many violations of one kind are listed; the rest are counted.
	MostListed = 100
)

// Report is the result of a check. holdfast.Report documents its fields.
type Report struct {
	Checked       map[string]int64
	Violations    []Violation
	Unlisted      int64
	OverdueLeases int64
}

// Violation is a violated invariant.
type Violation struct{ Invariant, Workspace, Subject, Message string }

// row is one row of a result: an object, its version, and a summary of its events. Some kinds use head, events and last for
// other numbers; the function that words the violation says which.
type row struct {
	nth    int64 // number in its page
	bad    bool
	at     store.Partition
	first  string // name; some names have two parts
	second string
	head   int64 // version in the head row, -1 for none
	events int64
	last   int64 // version of the last event, -1 for none

	// Scanned by scanDetailed only.
	stored int64  // first stored version
	wrong  string // what else is wrong, apart from the versions
}

// kind is one verb of the check and the wording of its violations.
type kind struct {
	verb      *store.Verb[row, []row]
	counts    string // key in Report.Checked, if they are counted
	invariant string // its number in docs/guarantees.md
	subject   func(row) string
	message   func(row) string
}

// newVerb declares a check that reads a page after a row, which is named by one or two parts.
func newVerb(name string, parts ...string) *store.Verb[row, []row] {
	return newVerbOf(name, scan, parts...)
}

func newVerbOf(name string, scan func(*[]row, store.Row) error, parts ...string) *store.Verb[row, []row] {
	return store.NewVerb(store.Decl{Name: name, Lane: store.Read, Slow: true}, nil,
		func(after row, a *store.Args) {
			a.Text(parts[0], after.first)
			if len(parts) == 2 {
				a.Text(parts[1], after.second)
			}
			a.Int("limit", page)
		}, scan)
}

var scan = store.Each(func(f *row) []any {
	return []any{&f.nth, &f.bad, &f.at.Shard, &f.at.Workspace, &f.first, &f.second, &f.head, &f.events, &f.last}
})

// scanDetailed also scans stored and wrong.
var scanDetailed = store.Each(func(f *row) []any {
	return []any{&f.nth, &f.bad, &f.at.Shard, &f.at.Workspace, &f.first, &f.second, &f.head, &f.events, &f.last, &f.stored, &f.wrong}
})

var kinds = []kind{
	{newVerbOf("check.streams", scanDetailed, "stream"), "streams", "I17", named("stream "), unevenStream},
	{newVerb("check.events", "stream"), "", "I17", named("stream "), headless},
	{newVerbOf("check.entities", scanDetailed, "lifecycle", "entity"), "entities", "I42", named("entity "), uneven},
	{newVerb("check.claims", "lifecycle", "entity"), "claims", "I5", named("entity "), miscounted},
	{newVerbOf("check.statuses", scanDetailed, "lifecycle", "entity"), "", "I7", named("entity "), stranded},
	{newVerbOf("check.scopes", scanDetailed, "kind", "scope"), "scopes", "I30", named("scope "), uneven},
	{newVerb("check.wallets", "wallet"), "wallets", "I9", named("wallet "), unbalanced},
	{newVerbOf("check.batches", scanDetailed, "batch"), "batches", "I9-I11", named("batch "), unevenBatch},
	{newVerbOf("check.runs", scanDetailed, "run"), "runs", "I42", named("run "), unevenRun},
	{newVerb("check.histories", "stream"), "", "I42", named("history "), headless},
	{newVerb("check.positions", "reaction", "stream"), "positions", "I20", named("reaction "), misplaced},
}

// overdue is how long after its expiry a lease counts as overdue: six times the default interval of sweeps. Under a longer
// Config.SweepEvery, leases may be overdue although the janitor works.
const overdue = time.Minute

var leasesVerb = store.NewVerb(store.Decl{Name: "check.leases", Lane: store.Read, Slow: true}, nil,
	func(ago time.Duration, a *store.Args) { a.Int("ago", ago.Milliseconds()) },
	store.ScanValue[int64])

func named(what string) func(row) string {
	return func(f row) string {
		if f.second == "" {
			return what + f.first
		}
		return what + f.first + "/" + f.second
	}
}

// uneven describes a head that differs from its last event, or a gap below it.
func uneven(f row) string {
	if f.last < 0 {
		return fmt.Sprintf("the version is %d, but there are no events", f.head)
	}
	if f.last != f.head {
		return fmt.Sprintf("the version is %d, but the last event is at version %d", f.head, f.last)
	}
	return fmt.Sprintf("the version is %d, but there are %d events instead of %d: versions are missing", f.head, f.events, f.head-f.stored+1)
}

// wrongs describes what can be wrong with the head of a stream besides its versions.
var wrongs = map[string]string{
	"tombstone": "the stream is a tombstone, but has events before the last one",
	"hold":      "a close is in progress but has no lease, or there is a lease but no close is in progress",
	"pruned":    "there are events below the version up to which they are recorded as deleted, or that version is above the stream's first version",
}

func unevenStream(f row) string {
	if f.wrong != "" {
		return wrongs[f.wrong]
	}
	return uneven(f)
}

// unevenBatch describes what is wrong with a batch.
func unevenBatch(f row) string {
	switch f.wrong {
	case "counts":
		return "the counts do not match the items"
	case "money":
		return "the charges and refunds do not match those of the items, or an item has missing or extra ledger rows"
	case "end":
		return "the status is final, but there is unfinished work"
	}
	return uneven(f)
}

// unevenRun describes what is wrong with a run.
func unevenRun(f row) string {
	switch f.wrong {
	case "steps":
		return "an open step is not the current step, or the current step does not exist"
	case "end":
		return "the status is final, but there is unfinished work"
	case "stuck":
		return "the run has not ended, but nothing will resume it"
	case "deaf":
		return "the run waits for a signal that has already arrived: start a node, which wakes the run within minutes"
	case "paused":
		return "the run is paused, but one of its steps is due, or its cancel was requested and nothing will resume its step"
	case "effects":
		return "the effect count of a step does not match the journal"
	}
	return uneven(f)
}

// misplaced describes a reaction that is beyond its stream's end, or has not been notified of its last event: in f, head is the
// last version of the stream, events is the version that the reaction was notified of, and last is its watermark.
func misplaced(f row) string {
	if f.last > f.head || f.events > f.head {
		return fmt.Sprintf("the reaction has handled version %d and was notified of version %d, but the stream %s", f.last, f.events, end(f.head))
	}
	return fmt.Sprintf("the reaction was notified of version %d, but the stream is at version %d and there is no due notice", f.events, f.head)
}

// miscounted describes a claim: in f, head is the number of effects that the claim counts, events is the number in the
// journal, and last is the claim's epoch.
func miscounted(f row) string {
	return fmt.Sprintf("the claim with epoch %d counts %d effects that may have happened, but the journal has %d, or the claim was reverted although an effect may have happened", f.last, f.head, f.events)
}

// stranded describes an entity whose status or operation does not fit the config in force.
func stranded(f row) string {
	switch f.wrong {
	case "gone":
		return "the status does not exist in the lifecycle's config: add it to the config again, and move the entity to another status"
	case "stray":
		return "the entity is in a claim status without a claim: start a node, which reverts the entity"
	case "target":
		return "the operation leads to a status that the lifecycle's config does not have, or that is a claim status: put the status back into the config as it was when the operation began, and let the operation end"
	}
	return "the entity of the operation is in a status that is no longer a claim status, so the operation cannot end: make the status a claim status again, and let the operation end"
}

// unbalanced describes a wallet: head is its balance, last the sum of its ledger.
func unbalanced(f row) string {
	if f.head == f.last {
		return fmt.Sprintf("the ledger of %d rows has a gap, or a row for an item that another wallet pays for", f.events)
	}
	return fmt.Sprintf("the balance is %d, but the ledger of %d rows adds up to %d", f.head, f.events, f.last)
}

func headless(f row) string {
	return fmt.Sprintf("there are %d events, the last at version %d, but no row for the object itself", f.events, f.last)
}

// end describes the end of a stream whose last version is v.
func end(v int64) string {
	if v < 0 {
		return "has no events"
	}
	return fmt.Sprintf("ends at version %d", v)
}

// Run runs every check.
func Run(ctx context.Context, d store.Doer) (Report, error) {
	r := Report{Checked: make(map[string]int64)}
	for _, k := range kinds {
		if err := k.run(ctx, d, &r); err != nil {
			return r, err
		}
	}
	var err error
	r.OverdueLeases, err = leasesVerb.DoAt(ctx, d, store.Partition{}, overdue)
	return r, err
}

// run checks page after page; the zero row is before the first.
func (k kind) run(ctx context.Context, d store.Doer, r *Report) error {
	listed := 0
	for after := (row{nth: page}); after.nth == page; {
		begun := clock.Now()
		found, err := k.verb.DoAt(ctx, d, after.at, after)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		took := clock.Since(begun)
		for _, f := range found {
			if f.bad {
				listed++
				r.add(listed, Violation{k.invariant, f.at.Workspace, k.subject(f), k.message(f)})
			}
		}
		after = row{}
		if len(found) > 0 {
			after = found[len(found)-1]
		}
		if k.counts != "" {
			r.Checked[k.counts] += after.nth
		}
		if after.nth == page {
			if err := clock.Wait(ctx, Pause(took)); err != nil {
				return fmt.Errorf("check: %w", err)
			}
		}
	}
	return nil
}

// Pause returns the pause after a page that took the given time. Pages take a fifth of the time of a check, or more if a page
// takes longer than a fifth of the period.
func Pause(took time.Duration) time.Duration { return max(0, min(4*took, period-took)) }

// add lists a violation, or only counts it if enough of its kind are listed.
func (r *Report) add(nth int, v Violation) {
	if nth > MostListed {
		r.Unlisted++
		return
	}
	r.Violations = append(r.Violations, v)
}
