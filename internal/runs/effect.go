package runs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/definitions"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

type beginArgs struct {
	run, step    string
	visit, epoch int64
	name         string
	ordinal      int
	policy       effects.Policy
	results      []entities.Result
}

type endArgs struct {
	run, step    string
	visit, epoch int64
	name         string
	ordinal      int
	state        effects.State
	result       []byte
	by           effects.By
}

type noted struct {
	held bool
	effects.Entry
}

type renewArgs struct {
	run, step    string
	visit, epoch int64
	lease        time.Duration
}

// Renewed is a hold that goes on.
type Renewed struct {
	Until           time.Time
	CancelRequested bool
}

type pointArgs struct {
	run, step    string
	visit, epoch int64
	operation    string
}

var (
	beginVerb = store.NewVerb(store.Decl{Name: "runs.effectbegin", Repeat: true},
		func(a beginArgs) []string { return []string{row(a.run)} },
		func(a beginArgs, args *store.Args) {
			bindHeld(args, a.run, a.step, a.visit, a.epoch)
			args.Text("name", a.name)
			args.Int("ordinal", int64(a.ordinal))
			args.Text("policy", string(a.policy))
			args.Text("results", entities.ResultsJSON(a.results))
		},
		func(n *noted, r store.Row) error {
			n.held = r.Applied()
			return r.Scan((*string)(&n.State), &n.Epoch, (*string)(&n.Policy), &n.Result)
		})
	endVerb = store.NewVerb(store.Decl{Name: "runs.effectend", Repeat: true},
		func(a endArgs) []string { return []string{row(a.run)} },
		func(a endArgs, args *store.Args) {
			bindHeld(args, a.run, a.step, a.visit, a.epoch)
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
			bindHeld(args, a.run, a.step, a.visit, a.epoch)
			args.Int("lease", a.lease.Milliseconds())
		},
		func(all *[]Renewed, r store.Row) error {
			var x Renewed
			err := r.Scan(&x.Until, &x.CancelRequested)
			*all = append(*all, x)
			return err
		})
	lockVerb = store.NewVerb(store.Decl{Name: "runs.lock", Repeat: true},
		func(id string) []string { return []string{row(id)} },
		func(id string, args *store.Args) { args.Text("run", id) },
		func(there *bool, r store.Row) error {
			var one int64
			*there = r.Applied()
			return r.Scan(&one)
		})
	pointVerb = store.NewVerb(store.Decl{Name: "runs.point", Repeat: true},
		func(a pointArgs) []string { return []string{row(a.run)} },
		func(a pointArgs, args *store.Args) {
			bindHeld(args, a.run, a.step, a.visit, a.epoch)
			args.Text("operation", a.operation)
		},
		func(applied *bool, r store.Row) error {
			var one int64
			*applied = r.Applied()
			return r.Scan(&one)
		})
)

func bindHeld(args *store.Args, run, step string, visit, epoch int64) {
	args.Text("run", run)
	args.Text("step", step)
	args.Int("visit", visit)
	args.Int("epoch", epoch)
}

// Renew extends a hold, at most until the step's timeout, or returns [fault.LeaseLost].
func Renew(ctx context.Context, d store.Doer, l *Live, lease time.Duration) (Renewed, error) {
	all, err := renewVerb.DoAt(ctx, d, l.place(), renewArgs{l.Run.ID, l.Step.Name, l.Step.Visit, l.Step.Epoch, lease})
	if err == nil && len(all) == 0 {
		err = lostStep(l)
	}
	if err != nil {
		return Renewed{}, err
	}
	return all[0], nil
}

// Point notes which operation a transition has fired, in the transaction that fires it:
// once for a visit, under its hold.
func Point(ctx context.Context, d store.Doer, l *Live, operation string) error {
	ok, err := pointVerb.DoAt(ctx, d, l.place(), pointArgs{l.Run.ID, l.Step.Name, l.Step.Visit, l.Step.Epoch, operation})
	if err == nil && !ok {
		err = lostStep(l)
	}
	return err
}

// Book is where the effects of a held step are noted.
func (l *Live) Book(d store.Doer) effects.Book { return &book{d, l} }

type book struct {
	d store.Doer
	l *Live
}

// Operation is that of the step.
func (b *book) Operation() string { return b.l.Operation() }

// Begin notes that an effect is about to be tried.
func (b *book) Begin(ctx context.Context, name string, ordinal int, p effects.Policy, results []entities.Result) (effects.Entry, error) {
	l := b.l
	n, err := beginVerb.DoAt(ctx, b.d, l.place(), beginArgs{l.Run.ID, l.Step.Name, l.Step.Visit, l.Step.Epoch, name, ordinal, p, results})
	if err == nil && !n.held {
		err = lostStep(l)
	}
	n.Name, n.Ordinal = name, ordinal
	if n.State == "" || n.State == effects.Begun && n.Epoch == l.Step.Epoch { // the answer to it was lost: it is this attempt's own
		n.State = effects.New
	}
	return n.Entry, err
}

// End notes what became of an effect, and returns how it stands then.
func (b *book) End(ctx context.Context, name string, ordinal int, s effects.State, result []byte, asked bool) (effects.State, []byte, error) {
	l := b.l
	n, err := endVerb.DoAt(ctx, b.d, l.place(), endArgs{l.Run.ID, l.Step.Name, l.Step.Visit, l.Step.Epoch, name, ordinal, s, result, effects.HolderSays(asked)})
	if err == nil && !n.held {
		err = lostStep(l)
	}
	return n.State, n.Result, err
}

// Journal returns the effects of the step.
func (l *Live) Journal(ctx context.Context, d store.Doer) ([]effects.Entry, error) {
	return effects.List(ctx, d, l.place(), l.Operation())
}

// Late reports calls of a holder of the step that has lost its lease.
func (l *Live) Late(ctx context.Context, d store.Doer, node string, calls []effects.LateCall, log *slog.Logger) {
	effects.Late(ctx, d, l.place(), effects.Holder{Operation: l.Operation(), Subject: l.Subject(), Epoch: l.Step.Epoch, Node: node}, calls, log)
}

// Subject is what the step's operation is of.
func (l *Live) Subject() string { return "run " + l.Run.ID + " step " + l.Step.Name }

// Known is what a person says of an effect.
type Known struct {
	Name     string
	Ordinal  int
	Happened bool
	Result   []byte
}

// Resolve ends the doubt about a step that waits for a person. Without an outcome, the step
// goes on under its handler, unless it was an opaque body that is known to have happened:
// then that was it.
func (k *Desk) Resolve(ctx context.Context, e Engine, operation string, all []Known, outcome, by string) (Live, error) {
	l, err := ByOperation(ctx, e, operation)
	if err != nil {
		return l, err
	}
	if !slices.Contains([]string{"", "success", "failure"}, outcome) {
		return l, fault.New(fault.Validation, "the outcome of a step is success or failure: %q", outcome).With("pointer", "/outcome")
	}
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := lockVerb.DoAt(ctx, tx, l.place(), l.Run.ID); err != nil { // as everybody else has it before the step
			return err
		}
		now, err := load(ctx, tx, l.place(), loadArgs{l.Run.ID, l.Step.Name, l.Step.Visit})
		if err != nil {
			return err
		}
		if !now.Step.Uncertain {
			return fault.New(fault.Conflict, "the operation %s is not uncertain", operation)
		}
		l, err = k.resolve(ctx, tx, &now, all, outcome, by)
		return err
	})
	return l, err
}

func (k *Desk) resolve(ctx context.Context, tx *store.Tx, l *Live, all []Known, outcome, by string) (Live, error) {
	for _, x := range all {
		if err := l.close(ctx, tx, x); err != nil {
			return *l, err
		}
	}
	now, err := load(ctx, tx, l.place(), loadArgs{l.Run.ID, l.Step.Name, l.Step.Visit})
	if err != nil {
		return *l, err
	}
	journal, err := now.Journal(ctx, tx)
	if err != nil {
		return now, err
	}
	var output json.RawMessage
	for _, x := range journal {
		if x.State == effects.Begun && x.Policy == effects.Hold && outcome == "" {
			return now, fault.New(fault.Conflict, "nothing is known of the effect %q, ordinal %d, yet: say whether it happened", x.Name, x.Ordinal)
		}
		if x.Name == effects.Body && x.State == effects.Done && outcome == "" {
			outcome, output = "success", x.Result
		}
	}
	return k.settle(ctx, tx, &now, outcome, by, output)
}

func (k *Desk) settle(ctx context.Context, tx *store.Tx, l *Live, outcome, by string, output json.RawMessage) (Live, error) {
	next, err := k.try(ctx, tx, l, "", 0, func(c *course) error {
		c.settled(outcome, by, output)
		return nil
	})
	if errors.Is(err, errAgain) {
		err = fault.New(fault.Concurrency, "the run %q has moved on: try again", l.Run.ID)
	}
	return next, err
}

// close notes what a person knows of an effect.
func (l *Live) close(ctx context.Context, tx *store.Tx, x Known) error {
	if x.Result != nil {
		if err := strict.Check(x.Result); err != nil {
			return err
		}
	}
	state := effects.NotDone
	if x.Happened {
		state = effects.Done
	}
	n, err := endVerb.DoAt(ctx, tx, l.place(), endArgs{l.Run.ID, l.Step.Name, l.Step.Visit, l.Step.Epoch, x.Name, x.Ordinal, state, x.Result, effects.ByPerson})
	switch {
	case err != nil:
		return err
	case !n.held:
		return fault.New(fault.Conflict, "the operation %s is not uncertain", l.Operation())
	case n.State == "":
		return fault.New(fault.NotFound, "the operation %s has no effect %q, ordinal %d", l.Operation(), x.Name, x.Ordinal)
	case n.State != state:
		return fault.New(fault.Conflict, "of the effect %q, ordinal %d, it is known already that it is %s", x.Name, x.Ordinal, n.State)
	}
	return nil
}

// ByOperation finds the step that an operation is.
func ByOperation(ctx context.Context, d store.Doer, operation string) (Live, error) {
	run, step, visit, ok := cutOperation(operation)
	if !ok {
		return Live{}, fault.New(fault.NotFound, "there is no operation %q", operation)
	}
	at, err := d.Place(ctx, store.Read)
	if err != nil {
		return Live{}, err
	}
	return load(ctx, d, at, loadArgs{run, step, visit})
}

// following is where a run goes on behind a step.
func following(def *plot, step string) string {
	if i := def.Find(step); i >= 0 {
		return def.After(i)
	}
	return definitions.End
}

// doubtful says whether an earlier attempt of an opaque body may have acted.
func (l *Live) doubtful(ctx context.Context, d store.Doer) (bool, error) {
	journal, err := l.Journal(ctx, d)
	return slices.ContainsFunc(journal, func(x effects.Entry) bool {
		return x.Name == effects.Body && x.State == effects.Begun && x.Epoch != l.Step.Epoch
	}), err
}

// unknown says whether an effect of the step was begun of which nothing is known, nor will be
// by what is about to be noted, and what it saw.
func (l *Live) unknown(ctx context.Context, d store.Doer, noted []Result) (bool, *saw, error) {
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

// open says the same of the effects beside an opaque body as a whole.
func (l *Live) open(ctx context.Context, d store.Doer, noted []Result) (bool, *saw, error) {
	return l.unknown(ctx, d, append(slices.Clone(noted), Result{Name: effects.Body}))
}
