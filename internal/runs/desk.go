package runs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/definitions"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Desk is where runs are moved. It remembers definitions, which are not changed, and is
// safe for concurrent use. An engine has one.
type Desk struct {
	// Keep is how long a run is kept beyond its end whose definition does not say; 0 is
	// for ever.
	Keep time.Duration
	// Later is told when there will be something to do that is not due yet.
	Later func(time.Duration)

	mu  sync.Mutex
	all map[shelf]*plot
}

type shelf struct {
	at store.Place
	id string
}

// plot is a definition, and which of its steps its expressions look at.
type plot struct {
	*definitions.Definition
	looks map[string]bool
	all   bool
}

func plotOf(def *definitions.Definition) *plot {
	looks, all := def.Mentions()
	return &plot{def, looks, all}
}

// mostKnown is how many definitions are remembered.
const mostKnown = 5000

// definition returns a definition. What a transaction has read is not remembered: it may be
// its own, and never be.
func (k *Desk) definition(ctx context.Context, d store.Doer, at store.Place, id string) (*plot, error) {
	key := shelf{at, id}
	k.mu.Lock()
	p := k.all[key]
	k.mu.Unlock()
	if p != nil {
		return p, nil
	}
	all, err := definitionVerb.DoAt(ctx, d, at, id)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fault.New(fault.NotFound, "there is no definition %q", id).With("pointer", "/definitionId")
	}
	def, violations := definitions.Parse(all[0].Body)
	if len(violations) > 0 {
		return nil, fault.New(fault.Internal, "the definition %q cannot be read any more: %s", id, violations[0].Message)
	}
	p = plotOf(def)
	if _, inside := d.(*store.Tx); !inside {
		k.know(key, p)
	}
	return p, nil
}

func (k *Desk) know(key shelf, p *plot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= mostKnown {
		k.all = make(map[shelf]*plot)
	}
	k.all[key] = p
}

// Ensure keeps a definition where it is not kept yet, and knows it from then on.
func (k *Desk) Ensure(ctx context.Context, d store.Doer, def *definitions.Definition) error {
	at, err := d.Place(ctx, store.Write)
	if err != nil {
		return err
	}
	key := shelf{at, def.ID()}
	k.mu.Lock()
	known := k.all[key]
	k.mu.Unlock()
	if known != nil && known.Definition == def {
		return nil
	}
	if _, err := Define(ctx, d, def); err != nil {
		return err
	}
	if _, inside := d.(*store.Tx); !inside {
		k.know(key, plotOf(def))
	}
	return nil
}

// course begins a plan.
func (k *Desk) course(ctx context.Context, d store.Doer, l *Live) (*course, error) {
	def, err := k.definition(ctx, d, l.place(), l.Run.Definition)
	if err != nil {
		return nil, err
	}
	return k.bound(courseOf(l, def)), nil
}

// bound has a course keep to what the desk says.
func (k *Desk) bound(c *course) *course {
	if c.keep = c.def.Retention; c.keep == 0 {
		c.keep = k.Keep
	}
	return c
}

// Mine says of a handler that this node does its steps, and has room for one now.
type Mine func(handler string) (Handled, bool)

// Start asks for a run.
type Start struct {
	Definition string
	Input      []byte // JSON; nil is {}
	Key        string // "" for none
	Holder     string
	Lease      time.Duration
	Mine       Mine
}

// Start starts a run. One that was started under the key is returned instead, if it is of
// the same definition and input; if not, the error is [fault.KeyMismatch]. What the run
// took at once, for who starts it, is held.
func (k *Desk) Start(ctx context.Context, d store.Doer, s Start) (l Live, created bool, err error) {
	if s.Input == nil {
		s.Input = []byte("{}")
	}
	if err := checkStart(s); err != nil {
		return l, false, err
	}
	at, err := d.Place(ctx, store.Write)
	if err != nil {
		return l, false, err
	}
	def, err := k.definition(ctx, d, at, s.Definition)
	if err != nil {
		return l, false, err
	}
	l = Live{Shard: at.Shard, Run: Run{Workspace: at.Workspace, ID: newID(), Definition: def.ID(), Key: s.Key, Status: Pending, Input: s.Input, State: []byte("{}")}}
	c := k.bound(courseOf(&l, def))
	c.mine = s.Mine
	c.plan.Run.State = l.Run.State
	c.tell("created", map[string]any{"definition": def.ID()})
	c.enter(def.Steps[0].Name)
	return k.start(ctx, d, s, l, c)
}

func (k *Desk) start(ctx context.Context, d store.Doer, s Start, l Live, c *course) (Live, bool, error) {
	text, err := c.sealed()
	if err != nil {
		return l, false, err
	}
	a := startArgs{run: l.Run.ID, definition: l.Run.Definition, key: s.Key, input: string(s.Input), holder: s.Holder, lease: s.Lease, plan: text, names: c.names(), wakes: c.wakes, held: s.Lease}
	for {
		since := clock.OfMachine()
		got, err := startVerb.DoAt(ctx, d, l.place(), a)
		got.since = since
		switch {
		case err != nil:
			return l, false, err
		case got.applied:
			k.soon(c)
			got.moved.applied = true
			return c.after(&l, got.moved), true, nil
		case got.run != "":
			was, err := load(ctx, d, l.place(), loadArgs{run: got.run})
			if fault.CodeOf(err) == fault.NotFound {
				continue // its time was over
			}
			if err != nil {
				return was, false, err
			}
			return was, false, differs(was.Run, l.Run)
		}
		// Somebody has made it this very moment: it is there to be seen now.
	}
}

// differs refuses a key that stands for another run.
func differs(was, wanted Run) error {
	var what []string
	if was.Definition != wanted.Definition {
		what = append(what, "definitionId")
	}
	if !strict.Equal(was.Input, wanted.Input) {
		what = append(what, "input")
	}
	if len(what) == 0 {
		return nil
	}
	return fault.New(fault.KeyMismatch, "the key %q was used for the run %s, with another %s: use a new key, or the same content", was.Key, was.ID, join(what)).
		With("differs", what).With("runId", was.ID)
}

func join(what []string) string {
	if len(what) == 2 {
		return what[0] + " and another " + what[1]
	}
	return what[0]
}

// MaxKey is how long a key may be.
const MaxKey = 255

// CheckKey refuses what cannot be a key: it is 1 to 255 printable characters.
func CheckKey(key string) error {
	if err := strict.Text("idempotencyKey", key, MaxKey); err != nil {
		return err
	}
	return nil
}

func checkStart(s Start) error {
	if s.Key != "" {
		if err := CheckKey(s.Key); err != nil {
			return err
		}
	}
	return strict.Check(s.Input)
}

func (k *Desk) soon(c *course) {
	if k.Later != nil && c.later > 0 {
		k.Later(c.later)
	}
}

// mostTries is how often a plan is made whose run moves on each time.
const mostTries = 50

// errAgain says that a run has moved on: it is looked at again.
var errAgain = errors.New("the run has moved on")

// try makes a plan of how a run stands, and puts it into force.
func (k *Desk) try(ctx context.Context, d store.Doer, l *Live, holder string, lease time.Duration, f func(*course) error) (Live, error) {
	c, err := k.course(ctx, d, l)
	if err != nil {
		return *l, err
	}
	if err := f(c); err != nil {
		return *l, err
	}
	m, err := apply(ctx, d, l, c, holder, lease)
	switch {
	case err != nil:
		return *l, err
	case m.applied:
		k.soon(c)
		return c.after(l, m), nil
	case m.version == l.Run.Version: // it is the step that is not as it was
		return *l, lostStep(l)
	}
	return *l, errAgain
}

func lostStep(l *Live) error {
	return hold.Lost("the step "+l.Step.Name+" of the run "+l.Run.ID, l.Step.Epoch)
}

// holding does something under a hold, again and again while the run moves on otherwise. It
// is not lost by that: only by the hold's end.
func (k *Desk) holding(ctx context.Context, d store.Doer, l *Live, holder string, lease time.Duration, f func(*course) error) (Live, error) {
	if !l.taken && l.Step.Holder == "" || l.Step.Status != Running {
		return *l, lostStep(l)
	}
	for range mostTries {
		next, err := k.try(ctx, d, l, holder, lease, f)
		if !errors.Is(err, errAgain) {
			return next, err
		}
		now, err := load(ctx, d, l.place(), loadArgs{l.Run.ID, l.Step.Name, l.Step.Visit})
		if err != nil {
			return *l, err
		}
		if now.Step.Epoch != l.Step.Epoch || now.Step.Holder == "" || now.Step.Status != Running {
			return now, lostStep(l)
		}
		l = &now
	}
	return *l, fault.New(fault.Unavailable, "the run %q moved on each time it was tried", l.Run.ID).Repeatable()
}

// Take takes a step that is due. It says false where somebody else was first.
func (k *Desk) Take(ctx context.Context, d store.Doer, l *Live, h Handled, holder string, lease time.Duration) (Live, bool, error) {
	return k.take(ctx, d, l, h, holder, lease, false)
}

func (k *Desk) take(ctx context.Context, d store.Doer, l *Live, h Handled, holder string, lease time.Duration, elsewhere bool) (Live, bool, error) {
	next, err := k.try(ctx, d, l, holder, lease, func(c *course) error {
		c.take(h, elsewhere)
		return nil
	})
	if errors.Is(err, errAgain) || fault.CodeOf(err) == fault.LeaseLost {
		return *l, false, nil
	}
	return next, err == nil, err
}

// Ended is what a worker says of its step.
type Ended struct {
	Output, Patch []byte
	Results       []Result
	Holder        string
	Lease         time.Duration
	Mine          Mine
	// Whole refuses, with [effects.ErrOpen], where an effect was begun of which nothing is known.
	Whole bool
}

// Complete ends a step that is done, and goes on: what the run takes at once, for who does
// this, is held. Ending it again under the epoch that did, with the same output, gives the
// same answer.
func (k *Desk) Complete(ctx context.Context, d store.Doer, l *Live, e Ended) (Live, error) {
	if len(e.Output) == 0 {
		e.Output = []byte("null")
	}
	if err := strict.Check(e.Output); err != nil {
		return *l, err
	}
	if len(e.Patch) > 0 {
		if err := strict.Object(e.Patch); err != nil {
			return *l, err
		}
	}
	next, err := k.holding(ctx, d, l, e.Holder, e.Lease, func(c *course) error {
		c.how, c.mine = "held", e.Mine
		c.plan.Results = e.results(&c.step, effects.Done)
		if e.Whole {
			open, saw, err := l.open(ctx, d, c.plan.Results)
			if err != nil {
				return err
			}
			if open {
				return effects.ErrOpen
			}
			c.plan.Saw = saw
		}
		return c.completed(e.Output, e.Patch, following(c.def, c.step.Name))
	})
	if fault.CodeOf(err) == fault.LeaseLost {
		return k.again(ctx, d, l, err, func(s Step) bool { return s.Status == Completed && strict.Equal(s.Output, e.Output) })
	}
	return next, err
}

// results are those of the step's effects. An opaque body is one of them.
func (e Ended) results(s *Step, how effects.State) []Result {
	all := slices.Clone(e.Results)
	if s.Safety == opaque {
		r := Result{Name: effects.Body, State: string(how)}
		if how == effects.Done {
			r.Result = e.Output
		}
		all = append(all, r)
	}
	return all
}

// again says of an end that was lost whether it is this very one that was written.
func (k *Desk) again(ctx context.Context, d store.Doer, l *Live, lost error, same func(Step) bool) (Live, error) {
	now, err := load(ctx, d, l.place(), loadArgs{l.Run.ID, l.Step.Name, l.Step.Visit})
	if fault.CodeOf(err) == fault.NotFound {
		return *l, lost
	}
	if err != nil {
		return *l, errors.Join(lost, err)
	}
	if now.Step.Epoch == l.Step.Epoch && now.Step.Holder == "" && same(now.Step) {
		now.again = true
		return now, nil
	}
	return now, lost
}

// Failure is what a worker says of an attempt that failed.
type Failure struct {
	Message string
	Final   bool // it is not to be tried again
	// Told says that the worker's word is to be taken for what an opaque body did: nothing.
	Told bool
	// Unfired says that what a transition fired has ended, without effect.
	Unfired bool
	Results []Result
}

// Fail ends an attempt that its worker lived to report: the step is due again after a
// while, or has failed. Where an effect of it may have happened, that is no end: it waits
// for a person.
func (k *Desk) Fail(ctx context.Context, d store.Doer, l *Live, f Failure) (Live, error) {
	f.Message = hold.Plain(f.Message)
	if f.Told && l.Step.Attempts > 1 { // what it says is no word on an attempt before it
		doubtful, err := l.Doubtful(ctx, d)
		if err != nil {
			return *l, err
		}
		f.Told = !doubtful
	}
	next, err := k.holding(ctx, d, l, "", 0, func(c *course) error {
		c.how, c.plan.Results = "held", f.Results
		if f.Told {
			c.plan.Results = Ended{Results: f.Results}.results(&c.step, effects.NotDone)
		}
		unknown := false
		if c.last(f.Final) {
			var err error
			if unknown, c.plan.Saw, err = l.unknown(ctx, d, c.plan.Results); err != nil {
				return err
			}
		}
		if unknown {
			c.park(f.Message)
			return nil
		}
		c.fail(f.Message, f.Final)
		c.plan.Touch.Clear = f.Unfired
		return nil
	})
	if fault.CodeOf(err) == fault.LeaseLost {
		return k.again(ctx, d, l, err, func(s Step) bool {
			return (s.Status == Failed || s.Status == Waiting || s.Uncertain) && s.Error == f.Message
		})
	}
	return next, err
}

// Park has a step wait for a person: something may have happened, and nobody knows. Parking it
// again under the epoch that did, with the same message, gives the same answer.
func (k *Desk) Park(ctx context.Context, d store.Doer, l *Live, message string, results []Result) (Live, error) {
	message = hold.Plain(message)
	next, err := k.holding(ctx, d, l, "", 0, func(c *course) error {
		c.how, c.plan.Results = "held", results
		c.park(message)
		return nil
	})
	if fault.CodeOf(err) == fault.LeaseLost {
		return k.again(ctx, d, l, err, func(s Step) bool { return s.Uncertain && s.Error == message })
	}
	return next, err
}

// Pass has a step wait a while for something elsewhere.
func (k *Desk) Pass(ctx context.Context, d store.Doer, l *Live, delay time.Duration, results []Result) (Live, error) {
	return k.holding(ctx, d, l, "", 0, func(c *course) error {
		c.plan.Results = results
		if c.run.CancelRequested {
			c.sawStep()
		}
		c.pass(delay)
		return nil
	})
}

// Release gives a step back untouched; notDone says of an opaque body that it has not begun.
func (k *Desk) Release(ctx context.Context, d store.Doer, l *Live, notDone bool, results []Result) (Live, error) {
	return k.holding(ctx, d, l, "", 0, func(c *course) error {
		c.plan.Results = results
		if c.run.CancelRequested {
			c.sawStep()
		}
		if notDone {
			c.plan.Results = Ended{Results: results}.results(&c.step, effects.NotDone)
			if c.step.Safety == opaque {
				c.step.Begun--
			}
		}
		c.release()
		return nil
	})
}

// Tick does what is due at a step of the engine's own. It says false where nothing was, or
// somebody else was first.
func (k *Desk) Tick(ctx context.Context, d store.Doer, l *Live, holder string, lease time.Duration, mine Mine) (Live, bool, error) {
	next, err := k.try(ctx, d, l, holder, lease, func(c *course) error {
		c.mine = mine
		if !c.due(l) {
			c.how = "due"
			c.touch(c.step.Status, func(t *touch) { t.When = "deadline" })
		}
		return nil
	})
	if errors.Is(err, errAgain) || fault.CodeOf(err) == fault.LeaseLost {
		return *l, false, nil
	}
	return next, err == nil, err
}

// Command pauses, resumes, cancels or retries a run. With a version, it does so only if the
// run has it: otherwise the error is [fault.Concurrency]. What the run's status does not
// allow is [fault.InvalidTransition].
func (k *Desk) Command(ctx context.Context, d store.Doer, id, name string, version *int64) (Run, error) {
	for range mostTries {
		l, err := Load(ctx, d, id)
		if err != nil {
			return l.Run, err
		}
		if version != nil && *version != l.Run.Version {
			return l.Run, fault.New(fault.Concurrency, "the run %q has version %d, not %d: it has moved on", id, l.Run.Version, *version).
				With("expectedVersion", *version).With("lastVersion", l.Run.Version)
		}
		if name == Cancel && l.Run.CancelRequested && !Over(l.Run.Status) {
			return l.Run, nil // it is noted
		}
		next, err := k.try(ctx, d, &l, "", 0, func(c *course) error {
			open := false
			if name == Cancel && l.Step.Holder == "" && l.Step.Begun > 0 {
				var err error
				if open, c.plan.Saw, err = l.unknown(ctx, d, nil); err != nil {
					return err
				}
			}
			return c.command(name, open)
		})
		if errors.Is(err, errAgain) || fault.CodeOf(err) == fault.LeaseLost {
			continue
		}
		return next.Run, err
	}
	return Run{}, fault.New(fault.Unavailable, "the run %q moved on each time it was tried", id).Repeatable()
}
