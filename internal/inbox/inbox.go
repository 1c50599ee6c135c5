// Package inbox lists everything that needs a person or will not move by itself, in one workspace.
//
// A kind is found by one statement, in an index of live rows, never among finished ones; the kinds about nodes come from the
// reports of the nodes. The statement reads at most [Cap] rows and one more, so that the counts are exact up to Cap and the
// list costs the same however much is left. All kinds are then ordered by the time since when they wait, oldest first. If a
// kind has more entries than Cap, the list has Cap of them, and shows others when these are gone.
package inbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Kind is a kind of entry.
type Kind string

// Kinds of entries, in the order in which entries of the same time are listed.
const (
	UncertainOperation Kind = "uncertainOperation" // of an entity
	UncertainStep      Kind = "uncertainStep"      // of a run
	BlockedStream      Kind = "blockedStream"      // of a reaction
	RefusedWebhook     Kind = "refusedWebhook"
	FailedRun          Kind = "failedRun"
	PendingApproval    Kind = "pendingApproval"
	OverdueSignal      Kind = "overdueSignal"
	PausedBatch        Kind = "pausedBatch"
	FailingTeardown    Kind = "failingTeardown" // of a batch
	ExpiredLease       Kind = "expiredLease"
	ClosingStream      Kind = "closingStream"
	UnservedWork       Kind = "unservedWork"
	UnservedVersion    Kind = "unservedVersion" // of a workflow
	StalledJanitor     Kind = "stalledJanitor"
	HeldUpRetention    Kind = "heldUpRetention"
	OldSnapshot        Kind = "oldSnapshot" // of the database, held by an open transaction
)

// Kinds are all kinds.
var Kinds = []Kind{UncertainOperation, UncertainStep, BlockedStream, RefusedWebhook, FailedRun, PendingApproval, OverdueSignal, PausedBatch,
	FailingTeardown, ExpiredLease, ClosingStream, UnservedWork, UnservedVersion, StalledJanitor, HeldUpRetention, OldSnapshot}

const (
	// Cap is the number of entries of a kind that are listed and counted.
	Cap = 1000
	// Patience is how long work may be due and not taken, or a lease may be past its end, before it is listed. It is
	// longer than a pass of the janitor and than the time between two reports of a node.
	Patience = 15 * time.Second
	// DeletedWithin is how long rows may outlive their retention before they are listed.
	DeletedWithin = time.Hour
	// SnapshotAge is the age from which on a snapshot of the database, held by an open transaction, is listed.
	SnapshotAge = 5 * time.Minute
)

// Entry is one entry. Facts depend on the kind and on the statement that found the entry.
type Entry struct {
	Kind     Kind
	Place    string // unique within the kind
	Since    time.Time
	Owner    string // the holder, node or requesters concerned; "" if unknown
	Deadline time.Time
	Facts    [5]string
	Subject  string
	Reason   string
}

// Count is the number of entries of a kind. Capped means that there are more.
type Count struct {
	Kind   Kind
	Count  int
	Capped bool
}

// List returns the entries of some kinds, oldest first, and the counts of these kinds; no kinds mean all.
func List(ctx context.Context, d store.Doer, kinds ...Kind) ([]Entry, []Count, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, nil, err
	}
	if len(kinds) == 0 {
		kinds = Kinds
	}
	r := &reader{d: d, at: at, by: make(map[Kind][]Entry)}
	for _, s := range queries {
		if !slices.ContainsFunc(s.kinds, func(k Kind) bool { return slices.Contains(kinds, k) }) {
			continue
		}
		if err := s.read(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	var all []Entry
	var counts []Count
	for _, k := range Kinds {
		if !slices.Contains(kinds, k) {
			continue
		}
		some := r.by[k]
		c := Count{k, min(len(some), Cap), len(some) > Cap}
		all, counts = append(all, some[:c.Count]...), append(counts, c)
	}
	slices.SortStableFunc(all, Entry.Compare)
	return all, counts, nil
}

// Compare orders entries by their time, kind and place.
func (e Entry) Compare(o Entry) int {
	if c := e.Since.Compare(o.Since); c != 0 {
		return c
	}
	if c := slices.Index(Kinds, e.Kind) - slices.Index(Kinds, o.Kind); c != 0 {
		return c
	}
	return strings.Compare(e.Place, o.Place)
}

// reader reads the entries of one workspace.
type reader struct {
	d     store.Doer
	at    store.Partition
	by    map[Kind][]Entry
	nodes []nodes.Node
	asked bool // nodes are read
}

func (r *reader) add(e Entry) { r.by[e.Kind] = append(r.by[e.Kind], e) }

// allNodes returns the nodes, read once.
func (r *reader) allNodes(ctx context.Context) ([]nodes.Node, error) {
	if r.asked {
		return r.nodes, nil
	}
	all, err := nodes.All(ctx, r.d)
	r.nodes, r.asked = all, err == nil
	return all, err
}

// query is a statement with the kinds that it finds.
type query struct {
	kinds []Kind
	read  func(context.Context, *reader) error
}

type listArgs struct {
	limit int `arg:"limit"`
}

type patientArgs struct {
	patience time.Duration `arg:"patience"`
	limit    int           `arg:"limit"`
}

func scan(e *Entry) []any {
	return []any{&e.Place, &e.Since, &e.Owner, &e.Deadline, &e.Facts[0], &e.Facts[1], &e.Facts[2], &e.Facts[3], &e.Facts[4]}
}

func newList(name string) *store.Verb[listArgs, []Entry] {
	return store.VerbOf[listArgs](store.Decl{Name: "inbox." + name, Lane: store.Read}, nil, store.Each(scan))
}

func newPatient(name string) *store.Verb[patientArgs, []Entry] {
	return store.VerbOf[patientArgs](store.Decl{Name: "inbox." + name, Lane: store.Read}, nil, store.Each(scan))
}

// from returns a query of one statement. fill sets subject and reason.
func from(verb *store.Verb[listArgs, []Entry], fill func(*Entry), kind Kind) query {
	return query{[]Kind{kind}, func(ctx context.Context, r *reader) error {
		all, err := verb.DoAt(ctx, r.d, r.at, listArgs{Cap + 1})
		r.fill(all, fill, kind)
		return err
	}}
}

type blockedArgs struct {
	limit    int  `arg:"limit"`
	webhooks bool `arg:"webhooks"`
}

var blockedVerb = store.VerbOf[blockedArgs](store.Decl{Name: "inbox.list_blocked_streams", Lane: store.Read}, nil, store.Each(scan))

// blocked returns the query of blocked streams: of webhooks, or of other reactions.
func blocked(kind Kind, webhooks bool) query {
	return query{[]Kind{kind}, func(ctx context.Context, r *reader) error {
		all, err := blockedVerb.DoAt(ctx, r.d, r.at, blockedArgs{Cap + 1, webhooks})
		r.fill(all, (*Entry).blocked, kind)
		return err
	}}
}

// after returns a query of one statement that lists what is older than patience.
func after(verb *store.Verb[patientArgs, []Entry], patience time.Duration, fill func(*Entry), kind Kind) query {
	return query{[]Kind{kind}, func(ctx context.Context, r *reader) error {
		all, err := verb.DoAt(ctx, r.d, r.at, patientArgs{patience, Cap + 1})
		r.fill(all, fill, kind)
		return err
	}}
}

func (r *reader) fill(all []Entry, fill func(*Entry), kind Kind) {
	for _, e := range all {
		e.Kind = kind
		if e.Deadline.Unix() <= 0 {
			e.Deadline = time.Time{}
		}
		fill(&e)
		r.add(e)
	}
}

var queries = []query{
	from(newList("list_uncertain_operations"), (*Entry).uncertainOperation, UncertainOperation),
	from(newList("list_uncertain_steps"), (*Entry).uncertainStep, UncertainStep),
	blocked(BlockedStream, false),
	blocked(RefusedWebhook, true),
	from(newList("list_failed_runs"), (*Entry).failedRun, FailedRun),
	from(newList("list_pending_approvals"), (*Entry).approval, PendingApproval),
	from(newList("list_paused_batches"), (*Entry).pausedBatch, PausedBatch),
	from(newList("list_failing_teardowns"), (*Entry).teardown, FailingTeardown),
	after(newPatient("list_expired_leases"), Patience, (*Entry).expiredLease, ExpiredLease),
	after(newPatient("list_closing_streams"), Patience, (*Entry).closingStream, ClosingStream),
	after(newPatient("list_overdue_signals"), Patience, (*Entry).overdueSignal, OverdueSignal),
	after(newPatient("list_undeleted"), DeletedWithin, (*Entry).undeleted, HeldUpRetention),
	{[]Kind{UnservedWork, UnservedVersion}, unserved},
	{[]Kind{StalledJanitor, OldSnapshot}, ofNodes},
}
