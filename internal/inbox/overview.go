package inbox

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// CountCap is up to how many rows counts are exact where what has ended counts too.
const CountCap = 5_000

// Tally is a count by name. Capped means that there are more than [CountCap], and that only one more than these was counted.
type Tally struct {
	Counts map[string]int64
	Capped bool
}

// Overview counts what a workspace has.
type Overview struct {
	Operations, Runs, Batches                          map[string]int64 // that have not ended
	Approvals, Blocked                                 int64
	Entities, EndedRuns, EndedBatches, Streams, Scopes Tally
}

type live struct {
	what, name string
	n          int64
}

type named struct {
	name string
	n    int64
}

type statusArgs struct {
	lifecycle string `arg:"lifecycle"`
	limit     int    `arg:"limit"`
}

var (
	liveVerb = store.VerbOf[struct{}](store.Decl{Name: "overview.count_live", Lane: store.Read}, nil,
		store.Each(func(x *live) []any { return []any{&x.what, &x.name, &x.n} }))
	entitiesVerb = newTally("count_entities")
	runsVerb     = newTally("count_runs")
	batchesVerb  = newTally("count_batches")
	streamsVerb  = newTally("count_streams")
	scopesVerb   = newTally("count_scopes")
	statusesVerb = store.VerbOf[statusArgs](store.Decl{Name: "overview.count_statuses", Lane: store.Read}, nil, store.Each(scanNamed))
)

func scanNamed(x *named) []any { return []any{&x.name, &x.n} }

func newTally(name string) *store.Verb[listArgs, []named] {
	return store.VerbOf[listArgs](store.Decl{Name: "overview." + name, Lane: store.Read}, nil, store.Each(scanNamed))
}

// tally adds up counts that were read with one more than the cap.
func tally(all []named, err error) (Tally, error) {
	t := Tally{Counts: make(map[string]int64)}
	sum := int64(0)
	for _, x := range all {
		t.Counts[x.name] = x.n
		sum += x.n
	}
	t.Capped = sum > CountCap
	return t, err
}

// Overall counts what the context's workspace has.
func Overall(ctx context.Context, d store.Doer) (o Overview, err error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return o, err
	}
	all, err := liveVerb.DoAt(ctx, d, at, struct{}{})
	o.Operations, o.Runs, o.Batches = map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, x := range all {
		switch x.what {
		case "operation":
			o.Operations[x.name] = x.n
		case "run":
			o.Runs[x.name] = x.n
		case "batch":
			o.Batches[x.name] = x.n
		case "approval":
			o.Approvals = x.n
		default:
			o.Blocked = x.n
		}
	}
	for _, c := range []struct {
		verb *store.Verb[listArgs, []named]
		into *Tally
	}{{entitiesVerb, &o.Entities}, {runsVerb, &o.EndedRuns}, {batchesVerb, &o.EndedBatches}, {streamsVerb, &o.Streams}, {scopesVerb, &o.Scopes}} {
		if err == nil {
			*c.into, err = tally(c.verb.DoAt(ctx, d, at, listArgs{CountCap + 1}))
		}
	}
	return o, err
}

// Statuses counts the entities of a lifecycle by status.
func Statuses(ctx context.Context, d store.Doer, lifecycle string) (Tally, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return Tally{}, err
	}
	return tally(statusesVerb.DoAt(ctx, d, at, statusArgs{lifecycle, CountCap + 1}))
}
