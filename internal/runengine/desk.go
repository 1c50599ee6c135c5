package runengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/workflow"
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

// mostKnown is how many definitions are remembered.
const mostKnown = 5000

type defineArgs struct{ id, body string }

type defined struct {
	applied bool
	body    string
}

// Kept is a definition as it is kept.
type Kept struct {
	ID        string
	Body      []byte
	CreatedAt time.Time
}

type keptArgs struct {
	behind string
	limit  int
}

var (
	defineVerb = store.NewVerb(store.Decl{Name: "runs.define", Repeat: true},
		func(a defineArgs) []string { return []string{"definition/" + a.id} },
		func(a defineArgs, args *store.Args) { args.Text("definition", a.id); args.Text("body", a.body) },
		func(d *defined, r store.Row) error {
			d.applied = r.Applied()
			return r.Scan(&d.body)
		})
	definitionVerb = store.NewVerb(store.Decl{Name: "runs.definition", Lane: store.Read}, nil,
		func(id string, args *store.Args) { args.Text("definition", id) }, scanKept)
	definitionsVerb = store.NewVerb(store.Decl{Name: "runs.definitions", Lane: store.Read}, nil,
		func(a keptArgs, args *store.Args) { args.Text("after", a.behind); args.Int("limit", int64(a.limit)) }, scanKept)
)

func scanKept(all *[]Kept, r store.Row) error {
	var k Kept
	err := r.Scan(&k.ID, &k.Body, &k.CreatedAt)
	*all = append(*all, k)
	return err
}

// Define keeps a definition, and says whether it is new. There is one of a name and
// version: another under both is [fault.Conflict].
func Define(ctx context.Context, d store.Doer, def *workflow.Definition) (fresh bool, err error) {
	body := def.JSON()
	for {
		got, err := defineVerb.Do(ctx, d, defineArgs{def.ID(), string(body)})
		switch {
		case err != nil || got.applied:
			return got.applied, err
		case got.body == "": // made this very moment
			continue
		case !strictjson.Equal([]byte(got.body), body):
			return false, fault.New(fault.Conflict, "there is another definition %s already: a definition is not changed; give this one a new version", def.ID()).
				With("name", def.Name).With("version", def.Version)
		}
		return false, nil
	}
}

// Definition returns a definition as it is kept, or [fault.NotFound].
func Definition(ctx context.Context, d store.Doer, id string) (Kept, error) {
	if err := strictjson.Text("definition", id, events.MaxName); err != nil {
		return Kept{}, err
	}
	all, err := definitionVerb.Do(ctx, d, id)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "there is no definition %q", id).With("pointer", "/definitionId")
	}
	if err != nil {
		return Kept{}, err
	}
	return all[0], nil
}

// Definitions returns definitions in the order of their ids, behind one of them.
func Definitions(ctx context.Context, d store.Doer, behind string, limit int) ([]Kept, error) {
	return definitionsVerb.Do(ctx, d, keptArgs{behind: behind, limit: limit})
}

// definition returns a definition.
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
	def, violations := workflow.Parse(all[0].Body)
	if len(violations) > 0 {
		return nil, fault.New(fault.Internal, "the definition %q cannot be read any more: %s", id, violations[0].Message)
	}
	p = plotOf(def)
	k.know(d, key, p)
	return p, nil
}

// know remembers a definition. What a transaction has read is not remembered: it may be its own, and never be.
func (k *Desk) know(d store.Doer, key shelf, p *plot) {
	if _, inside := d.(*store.Tx); inside {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= mostKnown {
		k.all = make(map[shelf]*plot)
	}
	k.all[key] = p
}

// Ensure keeps a definition where it is not kept yet, and knows it from then on.
func (k *Desk) Ensure(ctx context.Context, d store.Doer, def *workflow.Definition) error {
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
	k.know(d, key, plotOf(def))
	return nil
}

// course begins a plan from how a run stands.
func (k *Desk) course(l *Live, def *plot) *course {
	c := &course{def: def, run: l.Run, step: l.Step, keep: cmp.Or(def.Retention, k.Keep)}
	_ = json.Unmarshal(l.Run.memo, &c.memo) // it is ours
	return c
}

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
	if s.Key != "" {
		if err := CheckKey(s.Key); err != nil {
			return l, false, err
		}
	}
	if err := strictjson.Check(s.Input); err != nil {
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
	c := k.course(&l, def)
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
			was, err := load(ctx, d, l.place(), visited{run: got.run})
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
	if !strictjson.Equal(was.Input, wanted.Input) {
		what = append(what, "input")
	}
	if len(what) == 0 {
		return nil
	}
	return fault.New(fault.KeyMismatch, "the key %q was used for the run %s, with another %s: use a new key, or the same content", was.Key, was.ID, strings.Join(what, " and another ")).
		With("differs", what).With("runId", was.ID)
}

// MaxKey is how long a key may be.
const MaxKey = 255

// CheckKey refuses what cannot be a key: it is 1 to 255 printable characters.
func CheckKey(key string) error {
	return strictjson.Text("idempotencyKey", key, MaxKey)
}

func (k *Desk) soon(c *course) {
	if k.Later != nil && c.later > 0 {
		k.Later(c.later)
	}
}

// Taker holds the step that a plan takes.
type Taker struct {
	Holder    string
	Lease     time.Duration
	Elsewhere bool // nothing is heard of it until it says something
}

// mostTries is how often a plan is made whose run moves on each time.
const mostTries = 50

// errAgain says that a run has moved on: it is looked at again.
var errAgain = errors.New("the run has moved on")

// movedOn says of an error that the run, or its step, is not as it was: somebody else was first.
func movedOn(err error) bool { return errors.Is(err, errAgain) || fault.CodeOf(err) == fault.LeaseLost }

// once makes one plan of how a run stands. It says false where somebody else was first.
func (k *Desk) once(ctx context.Context, d store.Doer, l *Live, by Taker, f func(*course)) (Live, bool, error) {
	next, err := k.try(ctx, d, l, by, func(c *course) error {
		f(c)
		return nil
	})
	if movedOn(err) {
		return *l, false, nil
	}
	return next, err == nil, err
}

// try makes a plan of how a run stands, and puts it into force.
func (k *Desk) try(ctx context.Context, d store.Doer, l *Live, by Taker, f func(*course) error) (Live, error) {
	def, err := k.definition(ctx, d, l.place(), l.Run.Definition)
	if err != nil {
		return *l, err
	}
	c := k.course(l, def)
	if err := f(c); err != nil {
		return *l, err
	}
	m, err := apply(ctx, d, l, c, by)
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

// holding does something under a hold, again and again while the run moves on otherwise. It
// is not lost by that: only by the hold's end.
func (k *Desk) holding(ctx context.Context, d store.Doer, l *Live, by Taker, f func(*course) error) (Live, error) {
	if !l.taken && l.Step.Holder == "" || l.Step.Status != Running {
		return *l, lostStep(l)
	}
	for range mostTries {
		next, err := k.try(ctx, d, l, by, f)
		if !errors.Is(err, errAgain) {
			return next, err
		}
		now, err := l.Now(ctx, d)
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

// end ends a step under its hold. Ending it again gives the same answer, where it ended under its epoch, and so.
func (k *Desk) end(ctx context.Context, d store.Doer, l *Live, by Taker, f func(*course) error, so func(Step) bool) (Live, error) {
	next, lost := k.holding(ctx, d, l, by, f)
	if fault.CodeOf(lost) != fault.LeaseLost {
		return next, lost
	}
	now, err := l.Now(ctx, d)
	if fault.CodeOf(err) == fault.NotFound {
		return *l, lost
	}
	if err != nil {
		return *l, errors.Join(lost, err)
	}
	if now.Step.Epoch == l.Step.Epoch && now.Step.Holder == "" && so(now.Step) {
		now.again = true
		return now, nil
	}
	return now, lost
}
