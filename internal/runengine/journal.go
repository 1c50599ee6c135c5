package runengine

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
)

// leasedStep is a visit of a step under the epoch of its lease.
type leasedStep struct {
	visited
	epoch int64
}

type beginArgs struct {
	leasedStep
	name    string
	ordinal int
	policy  effects.Policy
	results []entities.Result
}

type endArgs struct {
	leasedStep
	name    string
	ordinal int
	state   effects.State
	result  []byte
	by      effects.By // the source of the outcome; the SQL argument is named person
}

type noted struct {
	held bool // the lease is not lost
	effects.Entry
}

type renewArgs struct {
	leasedStep
	lease time.Duration
}

type recordFiredOperationArgs struct {
	leasedStep
	operation string
}

var (
	beginEffectVerb = store.NewVerb(store.Decl{Name: "runs.begin_effect", Idempotent: true},
		func(a beginArgs) []string { return []string{row(a.run)} },
		func(a beginArgs, args *store.Args) {
			a.bind(args)
			args.Text("name", a.name)
			args.Int("ordinal", int64(a.ordinal))
			args.Text("policy", string(a.policy))
			args.Text("results", entities.ResultsJSON(a.results))
		},
		func(n *noted, r store.Row) error {
			n.held = r.Applied()
			return r.Scan((*string)(&n.State), &n.Epoch, (*string)(&n.Policy), &n.Result)
		})
	endEffectVerb = store.NewVerb(store.Decl{Name: "runs.end_effect", Idempotent: true},
		func(a endArgs) []string { return []string{row(a.run)} },
		func(a endArgs, args *store.Args) {
			a.bind(args)
			args.Text("name", a.name)
			args.Int("ordinal", int64(a.ordinal))
			args.Text("state", string(a.state))
			args.MaybeText("result", string(a.result))
			args.Int("person", int64(a.by))
		},
		func(n *noted, r store.Row) error {
			n.held = r.Applied()
			return r.Scan((*string)(&n.State), &n.Result)
		})
	renewVerb = store.NewVerb(store.Decl{Name: "runs.renew", Lane: store.Vital}, nil,
		func(a renewArgs, args *store.Args) {
			a.bind(args)
			args.Int("lease", a.lease.Milliseconds())
		},
		func(all *[]remote.Renewed, r store.Row) error {
			var x remote.Renewed
			err := r.Scan(&x.Until, &x.CancelRequested)
			*all = append(*all, x)
			return err
		})
	lockVerb = store.NewVerb(store.Decl{Name: "runs.lock", Idempotent: true},
		func(id string) []string { return []string{row(id)} },
		func(id string, args *store.Args) { args.Text("run", id) },
		func(there *bool, r store.Row) error {
			var one int64
			*there = r.Applied()
			return r.Scan(&one)
		})
	recordFiredOperationVerb = store.NewVerb(store.Decl{Name: "runs.record_fired_operation", Idempotent: true},
		func(a recordFiredOperationArgs) []string { return []string{row(a.run)} },
		func(a recordFiredOperationArgs, args *store.Args) {
			a.bind(args)
			args.Text("operation", a.operation)
		},
		func(applied *bool, r store.Row) error {
			var one int64
			*applied = r.Applied()
			return r.Scan(&one)
		})
)

func (h leasedStep) bind(args *store.Args) {
	bindVisited(h.visited, args)
	args.Int("epoch", h.epoch)
}

func lostStep(l *ClaimedStep) error {
	return lease.Lost("step "+l.Step.Name+" of run "+l.Run.ID, l.Step.Epoch)
}

// late records that a late holder was refused, and returns the error.
func (l *ClaimedStep) late(ctx context.Context, d store.Doer, action string, err error) error {
	return refusals.Note(store.InWorkspace(ctx, l.partition().Workspace), d,
		refusals.Try{Stream: Stream(l.Run.ID), Action: action, Operation: l.Operation(), Epoch: l.Step.Epoch}, err)
}

// Renew extends a lease, at most until the step's timeout, or returns [fault.LeaseLost].
func Renew(ctx context.Context, d store.Doer, l *ClaimedStep, lease time.Duration) (remote.Renewed, error) {
	r, err := renew(ctx, d, l, lease)
	return r, l.late(ctx, d, "renew", err)
}

func renew(ctx context.Context, d store.Doer, l *ClaimedStep, lease time.Duration) (remote.Renewed, error) {
	all, err := renewVerb.DoAt(ctx, d, l.partition(), renewArgs{leasedStep{l.visited(), l.Step.Epoch}, lease})
	return store.First(all, err, func() error { return lostStep(l) })
}

// Point records the operation that a transition, a step of a run that fires a step of a lifecycle, has fired, in the
// transaction that fires it. It applies once per visit, under the lease of the run's step.
func Point(ctx context.Context, d store.Doer, l *ClaimedStep, operation string) error {
	ok, err := recordFiredOperationVerb.DoAt(ctx, d, l.partition(), recordFiredOperationArgs{leasedStep{l.visited(), l.Step.Epoch}, operation})
	if err == nil && !ok {
		err = lostStep(l)
	}
	return err
}

// Book returns the journal store for the effects of a leased step.
func (l *ClaimedStep) Book(d store.Doer) effects.Book { return &book{d, l} }

type book struct {
	d store.Doer
	l *ClaimedStep
}

// Operation returns the operation of the step.
func (b *book) Operation() string { return b.l.Operation() }

// Begin records that an effect is about to be attempted. In the same statement it records results, those of earlier
// effects that are not in the journal yet.
func (b *book) Begin(ctx context.Context, name string, ordinal int, p effects.Policy, results []entities.Result) (effects.Entry, error) {
	l := b.l
	n, err := beginEffectVerb.DoAt(ctx, b.d, l.partition(), beginArgs{leasedStep{l.visited(), l.Step.Epoch}, name, ordinal, p, results})
	if err == nil && !n.held {
		err = l.late(ctx, b.d, "beginEffect", lostStep(l))
	}
	n.Name, n.Ordinal = name, ordinal
	// "" comes with an error. Begun under this epoch: this attempt called Begin before, and the response was lost.
	if n.State == "" || n.State == effects.Begun && n.Epoch == l.Step.Epoch {
		n.State = effects.New
	}
	return n.Entry, err
}

// End records the outcome of an effect and returns the resulting state.
func (b *book) End(ctx context.Context, name string, ordinal int, s effects.State, result []byte, probed bool) (effects.State, []byte, error) {
	l := b.l
	n, err := endEffectVerb.DoAt(ctx, b.d, l.partition(), endArgs{leasedStep{l.visited(), l.Step.Epoch}, name, ordinal, s, result, effects.HolderSays(probed)})
	if err == nil && !n.held {
		err = l.late(ctx, b.d, "endEffect", lostStep(l))
	}
	return n.State, n.Result, err
}

// Journal returns the effects of the step.
func (l *ClaimedStep) Journal(ctx context.Context, d store.Doer) ([]effects.Entry, error) {
	return effects.List(ctx, d, l.partition(), l.Operation())
}

// unknown reports whether a begun effect of the step has an unknown outcome that the results in
// noted do not resolve. It also returns the journal counts that the answer is based on.
func (l *ClaimedStep) unknown(ctx context.Context, d store.Doer, noted []Result) (bool, *saw, error) {
	journal, err := l.Journal(ctx, d)
	if err != nil {
		return false, nil, err
	}
	unknown, begun, open := false, int64(0), int64(0)
	for _, x := range journal {
		if x.State != effects.NotDone {
			begun++
		}
		if x.State == effects.Begun {
			open++
		}
		unknown = unknown || x.State == effects.Begun && !slices.ContainsFunc(noted, func(r Result) bool { return r.Name == x.Name && r.Ordinal == x.Ordinal })
	}
	return unknown, &saw{Begun: &begun, Open: open}, nil
}

// open is like unknown, but ignores the opaque body itself.
func (l *ClaimedStep) open(ctx context.Context, d store.Doer, noted []Result) (bool, *saw, error) {
	return l.unknown(ctx, d, append(slices.Clone(noted), Result{Name: effects.Body}))
}

// Doubtful reports whether an earlier attempt of an opaque body may have acted. If so, a report of the current attempt
// that it did nothing does not settle the matter: it does not cover the earlier one.
func (l *ClaimedStep) Doubtful(ctx context.Context, d store.Doer) (bool, error) {
	if l.Step.Safety != opaque {
		return false, nil
	}
	journal, err := l.Journal(ctx, d)
	return slices.ContainsFunc(journal, func(x effects.Entry) bool {
		return x.Name == effects.Body && x.State == effects.Begun && x.Epoch != l.Step.Epoch
	}), err
}

// Probes reports whether the step is to be probed instead of executed, because an earlier attempt
// of an opaque body may have acted.
func (l *ClaimedStep) Probes(ctx context.Context, d store.Doer) (bool, error) {
	if l.Step.Unknown != "probe" || l.Step.Attempts < 2 {
		return false, nil
	}
	return l.Doubtful(ctx, d)
}

// Late reports calls of a holder of the step that has lost its lease.
func (l *ClaimedStep) Late(ctx context.Context, d store.Doer, node string, calls []effects.LateCall, log *slog.Logger) {
	effects.Late(ctx, d, l.partition(), effects.Holder{Operation: l.Operation(), Subject: l.Subject(), Epoch: l.Step.Epoch, Node: node}, calls, log)
}
