// Package check holds a database to the invariants that its rows can show.
//
//	report, err := check.Run(ctx, engine)
//
// It looks at every shard and every workspace and changes nothing. Each verb
// answers a page of what it looked at: the rows that break an invariant, and the
// last row whatever it is, so that the next page begins there. One statement sees
// one state of the database, with the head of a stream and its events, so a check
// may run while others write.
//
// Rejected: one statement over everything. On a large database it would run into
// the limits that keep a stuck statement from holding everybody up.
package check

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// page is how many heads one statement judges.
	page = 1000
	// MostListed is how many violations of one kind are listed; the others
	// are counted.
	MostListed = 100
)

// Report says what was looked at and what is wrong with it; holdfast.Report explains it.
type Report struct {
	Checked       map[string]int64
	Violations    []Violation
	Unlisted      int64
	OverdueLeases int64
}

// Violation is an invariant that something breaks.
type Violation struct{ Invariant, Workspace, Subject, Message string }

// row is one row of an answer: the head of a history, and what was found of that
// history.
type row struct {
	nth    int64 // in its page
	bad    bool
	at     store.Partition
	first  string // the name, of which some have two parts
	second string
	head   int64 // the version that the row says it is at, -1 if there is none
	events int64
	last   int64 // the version of the last event, -1 if there is none

	kept  int64  // of a stream: the first version kept
	wrong string // of a stream: what else is wrong with its head
}

// kind is one verb of the check and the way to tell what it found.
type kind struct {
	verb    *store.Verb[row, []row]
	counts  string // what Checked calls them, if it counts them
	judge   string // the invariant
	subject func(row) string
	message func(row) string
}

// newVerb declares a check that reads a page behind a row, which one or two parts name.
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

// scanStream scans what is told of streams beyond the others.
var scanStream = store.Each(func(f *row) []any {
	return []any{&f.nth, &f.bad, &f.at.Shard, &f.at.Workspace, &f.first, &f.second, &f.head, &f.events, &f.last, &f.kept, &f.wrong}
})

var kinds = []kind{
	{newVerbOf("check.streams", scanStream, "stream"), "streams", "I17", named("stream "), unevenStream},
	{newVerb("check.events", "stream"), "", "I17", named("stream "), headless},
	{newVerb("check.entities", "lifecycle", "entity"), "entities", "I42", named("entity "), uneven},
	{newVerb("check.claims", "lifecycle", "entity"), "claims", "I5", named("entity "), forgotten},
	{newVerbOf("check.stranded", scanStream, "lifecycle", "entity"), "", "I7", named("entity "), astrand},
	{newVerb("check.scopes", "kind", "scope"), "scopes", "I30", named("scope "), uneven},
	{newVerb("check.wallets", "wallet"), "wallets", "I9", named("wallet "), unbalanced},
	{newVerbOf("check.batches", scanStream, "batch"), "batches", "I9-I11", named("batch "), unevenBatch},
	{newVerbOf("check.runs", scanStream, "run"), "runs", "I42", named("run "), unevenRun},
	{newVerb("check.histories", "stream"), "", "I42", named("history "), headless},
	{newVerb("check.follows", "reaction", "stream"), "positions", "I20", named("reaction "), astray},
}

// overdue is how long after its end a hold is overdue, beyond any sweep's turn.
const overdue = time.Minute

var leasesVerb = store.NewVerb(store.Decl{Name: "check.holds", Lane: store.Read, Slow: true}, nil,
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

// uneven tells of a head that is not where its events end, or of a gap below it.
func uneven(f row) string {
	if f.last != f.head {
		return fmt.Sprintf("it is at version %d, but its last event is at %s", f.head, version(f.last))
	}
	return fmt.Sprintf("it is at version %d, but has %d events where there must be %d: versions are missing", f.head, f.events, f.head-f.kept+1)
}

// wrongs tells what can be wrong with the head of a stream but its versions.
var wrongs = map[string]string{
	"tombstone": "it is a tombstone, and keeps events before it",
	"hold":      "it is being closed by nobody, or held and not being closed",
	"pruned":    "it has events below the version up to which they are said to be deleted",
}

func unevenStream(f row) string {
	if f.wrong != "" {
		return wrongs[f.wrong]
	}
	return uneven(f)
}

// unevenBatch tells what is wrong with a batch.
func unevenBatch(f row) string {
	switch f.wrong {
	case "counts":
		return "its counts are not those of its items"
	case "money":
		return "what it says was charged and refunded is not what its items were, or an item has not its rows in the ledger, and no others"
	case "end":
		return "it is at its end, and something of it is still to be done"
	}
	return uneven(f)
}

// unevenRun tells what is wrong with a run.
func unevenRun(f row) string {
	switch f.wrong {
	case "steps":
		return "it has another step to do than the one that it stands at"
	case "end":
		return "it is over, and something of it is still to be done"
	case "stuck":
		return "it is not over, and nobody will ever look at it again"
	case "deaf":
		return "it waits for a signal that is in its inbox: run a node, which wakes it within minutes"
	case "paused":
		return "it is paused, and a step of it is due"
	case "effects":
		return "one of its steps counts other effects than the journal has"
	}
	return uneven(f)
}

// astray tells of a reaction that is beyond its stream's end, or does not know of
// its last event: events stands for what it knows of, last for what it has
// handled.
func astray(f row) string {
	if f.last > f.head || f.events > f.head {
		return fmt.Sprintf("it has handled version %d and knows of %d, and its stream ends at %s", f.last, f.events, version(f.head))
	}
	return fmt.Sprintf("it knows of version %d, and its stream is at %d without a mark", f.events, f.head)
}

func forgotten(f row) string {
	return fmt.Sprintf("its claim under epoch %d counts %d effects that may have happened, and the journal has %d, or it went back all the same", f.last, f.head, f.events)
}

// astrand tells of an entity that the config in force has no place for.
func astrand(f row) string {
	switch f.wrong {
	case "gone":
		return "it is in a status that its lifecycle's config does not have: put the status back into the config, and move it on"
	case "stray":
		return "it is in a claim status, and nobody has claimed it: run a node, which puts it back"
	case "target":
		return "its operation leads to a status that its lifecycle's config does not have, or that is a claim status: put the status back as it was, and let the operation end"
	}
	return "its operation is held in a status that is no claim status any more, and no end moves it: make it a claim status again, and let the operation end"
}

// unbalanced tells of a wallet: head stands for its balance, last for the sum.
func unbalanced(f row) string {
	if f.head == f.last {
		return fmt.Sprintf("its ledger of %d rows has a gap, or an item of a batch that another wallet pays", f.events)
	}
	return fmt.Sprintf("its balance is %d, and its ledger of %d rows adds up to %d", f.head, f.events, f.last)
}

func headless(f row) string {
	return fmt.Sprintf("it has %d events, the last at version %d, and no row that they belong to", f.events, f.last)
}

func version(v int64) string {
	if v < 0 {
		return "none"
	}
	return fmt.Sprint(v)
}

// Run checks everything.
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

// run judges page after page; the zero row is before the first.
func (k kind) run(ctx context.Context, d store.Doer, r *Report) error {
	listed := 0
	for after := (row{nth: page}); after.nth == page; {
		found, err := k.verb.DoAt(ctx, d, after.at, after)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		for _, f := range found {
			if f.bad {
				listed++
				r.add(listed, Violation{k.judge, f.at.Workspace, k.subject(f), k.message(f)})
			}
		}
		after = row{}
		if len(found) > 0 {
			after = found[len(found)-1]
		}
		if k.counts != "" {
			r.Checked[k.counts] += after.nth
		}
	}
	return nil
}

// add lists a violation, or counts it when enough of its kind are listed.
func (r *Report) add(nth int, v Violation) {
	if nth > MostListed {
		r.Unlisted++
		return
	}
	r.Violations = append(r.Violations, v)
}
