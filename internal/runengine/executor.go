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

// Executor is where runs are moved. It remembers definitions, which are not changed, and is
// safe for concurrent use. An engine has one.
type Executor struct {
	// Retention is how long a run is kept beyond its end whose definition does not say; 0 is
	// for ever.
	Retention time.Duration
	// Later is told when there will be something to do that is not due yet.
	Later func(time.Duration)

	mu  sync.Mutex
	all map[definitionKey]*compiled
}

type definitionKey struct {
	at store.Partition
	id string
}

// mostKnown is how many definitions are remembered.
const mostKnown = 5000

type defineArgs struct{ id, body string }

type defined struct {
	applied bool
	body    string
}

// StoredDefinition is a definition as it is kept.
type StoredDefinition struct {
	ID        string
	Body      []byte
	CreatedAt time.Time
}

type definitionsArgs struct {
	behind string
	limit  int
}

var (
	defineVerb = store.NewVerb(store.Decl{Name: "runs.define", Idempotent: true},
		func(a defineArgs) []string { return []string{"definition/" + a.id} },
		func(a defineArgs, args *store.Args) { args.Text("definition", a.id); args.Text("body", a.body) },
		func(d *defined, r store.Row) error {
			d.applied = r.Applied()
			return r.Scan(&d.body)
		})
	definitionVerb = store.NewVerb(store.Decl{Name: "runs.definition", Lane: store.Read}, nil,
		func(id string, args *store.Args) { args.Text("definition", id) }, scanDefinition)
	definitionsVerb = store.NewVerb(store.Decl{Name: "runs.definitions", Lane: store.Read}, nil,
		func(a definitionsArgs, args *store.Args) {
			args.Text("after", a.behind)
			args.Int("limit", int64(a.limit))
		}, scanDefinition)
)

func scanDefinition(all *[]StoredDefinition, r store.Row) error {
	var k StoredDefinition
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
func Definition(ctx context.Context, d store.Doer, id string) (StoredDefinition, error) {
	if err := strictjson.Text("definition", id, events.MaxName); err != nil {
		return StoredDefinition{}, err
	}
	all, err := definitionVerb.Do(ctx, d, id)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "there is no definition %q", id).With("pointer", "/definitionId")
	}
	if err != nil {
		return StoredDefinition{}, err
	}
	return all[0], nil
}

// Definitions returns definitions in the order of their ids, behind one of them.
func Definitions(ctx context.Context, d store.Doer, behind string, limit int) ([]StoredDefinition, error) {
	return definitionsVerb.Do(ctx, d, definitionsArgs{behind: behind, limit: limit})
}

// definition returns a definition.
func (k *Executor) definition(ctx context.Context, d store.Doer, at store.Partition, id string) (*compiled, error) {
	key := definitionKey{at, id}
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
	p = compile(def)
	k.know(d, key, p)
	return p, nil
}

// know remembers a definition. What a transaction has read is not remembered: it may be its own, and never be.
func (k *Executor) know(d store.Doer, key definitionKey, p *compiled) {
	if _, inside := d.(*store.Tx); inside {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= mostKnown {
		k.all = make(map[definitionKey]*compiled)
	}
	k.all[key] = p
}

// Ensure keeps a definition where it is not kept yet, and knows it from then on.
func (k *Executor) Ensure(ctx context.Context, d store.Doer, def *workflow.Definition) error {
	at, err := d.Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	key := definitionKey{at, def.ID()}
	k.mu.Lock()
	known := k.all[key]
	k.mu.Unlock()
	if known != nil && known.Definition == def {
		return nil
	}
	if _, err := Define(ctx, d, def); err != nil {
		return err
	}
	k.know(d, key, compile(def))
	return nil
}

// planner begins a plan from how a run stands.
func (k *Executor) planner(l *ClaimedStep, def *compiled) *planner {
	c := &planner{def: def, run: l.Run, step: l.Step, retention: cmp.Or(def.Retention, k.Retention)}
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
	Local      LocalHandlers
}

// Start starts a run. One that was started under the key is returned instead, if it is of
// the same definition and input; if not, the error is [fault.KeyMismatch]. What the run
// took at once, for who starts it, is held.
func (k *Executor) Start(ctx context.Context, d store.Doer, s Start) (l ClaimedStep, created bool, err error) {
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
	at, err := d.Partition(ctx, store.Write)
	if err != nil {
		return l, false, err
	}
	def, err := k.definition(ctx, d, at, s.Definition)
	if err != nil {
		return l, false, err
	}
	l = ClaimedStep{Shard: at.Shard, Run: Run{Workspace: at.Workspace, ID: newID(), Definition: def.ID(), Key: s.Key, Status: Pending, Input: s.Input, State: []byte("{}")}}
	c := k.planner(&l, def)
	c.local = s.Local
	c.plan.Run.State = l.Run.State
	c.emit("created", map[string]any{"definition": def.ID()})
	c.enter(def.Steps[0].Name)
	return k.start(ctx, d, s, l, c)
}

func (k *Executor) start(ctx context.Context, d store.Doer, s Start, l ClaimedStep, c *planner) (ClaimedStep, bool, error) {
	text, err := c.sealed()
	if err != nil {
		return l, false, err
	}
	a := startArgs{run: l.Run.ID, definition: l.Run.Definition, key: s.Key, input: string(s.Input), holder: s.Holder, lease: s.Lease, plan: text, names: c.names(), wakes: c.wakes, held: s.Lease}
	for {
		since := clock.OfMachine()
		got, err := startVerb.DoAt(ctx, d, l.partition(), a)
		got.since = since
		switch {
		case err != nil:
			return l, false, err
		case got.applied:
			k.soon(c)
			got.moved.applied = true
			return c.after(&l, got.moved), true, nil
		case got.run != "":
			was, err := load(ctx, d, l.partition(), visited{run: got.run})
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

func (k *Executor) soon(c *planner) {
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

// maxAttempts is how often a plan is made whose run moves on each time.
const maxAttempts = 50

// errAgain says that a run has moved on: it is looked at again.
var errAgain = errors.New("the run has moved on")

// movedOn says of an error that the run, or its step, is not as it was: somebody else was first.
func movedOn(err error) bool { return errors.Is(err, errAgain) || fault.CodeOf(err) == fault.LeaseLost }

// once makes one plan of how a run stands. It says false where somebody else was first.
func (k *Executor) once(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner)) (ClaimedStep, bool, error) {
	next, err := k.try(ctx, d, l, by, func(c *planner) error {
		f(c)
		return nil
	})
	if movedOn(err) {
		return *l, false, nil
	}
	return next, err == nil, err
}

// try makes a plan of how a run stands, and puts it into force.
func (k *Executor) try(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner) error) (ClaimedStep, error) {
	def, err := k.definition(ctx, d, l.partition(), l.Run.Definition)
	if err != nil {
		return *l, err
	}
	c := k.planner(l, def)
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
func (k *Executor) holding(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner) error) (ClaimedStep, error) {
	if !l.taken && l.Step.Holder == "" || l.Step.Status != Running {
		return *l, lostStep(l)
	}
	for range maxAttempts {
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
func (k *Executor) end(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner) error, so func(Step) bool) (ClaimedStep, error) {
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
