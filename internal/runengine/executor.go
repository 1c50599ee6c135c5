package runengine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Executor moves runs. It caches definitions, which never change, and is safe for concurrent use. An
// engine has one.
type Executor struct {
	// Retention is the retention of finished runs whose definition sets none; 0 means
	// forever.
	Retention time.Duration
	// KeyRetention is how long the key of a deleted run is kept; 0 means forever.
	KeyRetention time.Duration
	// Later is called with the time until the next step becomes due.
	Later func(time.Duration)
	// PlansOnly makes every move use a plan, never the verbs for the frequent moves. It is for tests.
	PlansOnly bool

	mu  sync.Mutex
	all map[definitionKey]*compiled
}

type definitionKey struct {
	at store.Partition
	id string
}

// maxCached limits how many definitions are cached.
const maxCached = 5000

type defineArgs struct{ id, body string }

type defined struct {
	applied bool
	body    string
}

// StoredDefinition is a stored definition.
type StoredDefinition struct {
	ID        string
	Body      []byte
	CreatedAt time.Time
}

type definitionsArgs struct {
	after string
	limit int
}

var (
	defineVerb = store.NewVerb(store.Decl{Name: "runs.put_definition", Idempotent: true},
		func(a defineArgs) []string { return []string{"definition/" + a.id} },
		func(a defineArgs, args *store.Args) { args.Text("definition", a.id); args.Text("body", a.body) },
		func(d *defined, r store.Row) error {
			d.applied = r.Applied()
			return r.Scan(&d.body)
		})
	definitionVerb = store.NewVerb(store.Decl{Name: "runs.get_definition", Lane: store.Read}, nil,
		func(id string, args *store.Args) { args.Text("definition", id) }, scanDefinition)
	definitionsVerb = store.NewVerb(store.Decl{Name: "runs.list_definitions", Lane: store.Read}, nil,
		func(a definitionsArgs, args *store.Args) {
			args.Text("after", a.after)
			args.Int("limit", int64(a.limit))
		}, scanDefinition)
)

func scanDefinition(all *[]StoredDefinition, r store.Row) error {
	var k StoredDefinition
	err := r.Scan(&k.ID, &k.Body, &k.CreatedAt)
	*all = append(*all, k)
	return err
}

// Define stores a definition and reports whether it is new. A different definition with the same name
// and version returns [fault.Conflict].
func Define(ctx context.Context, d store.Doer, def *workflow.Definition) (fresh bool, err error) {
	body := def.JSON()
	for {
		got, err := defineVerb.Do(ctx, d, defineArgs{def.ID(), string(body)})
		switch {
		case err != nil || got.applied:
			return got.applied, err
		case got.body == "": // stored concurrently
			continue
		case !strictjson.Equal([]byte(got.body), body):
			return false, fault.New(fault.Conflict, "definition %q already exists with different content and cannot be changed: use a new version", def.ID()).
				With("name", def.Name).With("version", def.Version)
		}
		return false, nil
	}
}

// Definition returns a stored definition, or [fault.NotFound].
func Definition(ctx context.Context, d store.Doer, id string) (StoredDefinition, error) {
	if err := strictjson.Text("definition", id, events.MaxName); err != nil {
		return StoredDefinition{}, err
	}
	all, err := definitionVerb.Do(ctx, d, id)
	if err == nil && len(all) == 0 {
		err = unknownDefinition(id)
	}
	if err != nil {
		return StoredDefinition{}, err
	}
	return all[0], nil
}

func unknownDefinition(id string) error {
	hint := ""
	if !strings.Contains(id, "@") {
		hint = fmt.Sprintf(": the id of a definition is its name and its version, such as %s@1", id)
	}
	return fault.New(fault.NotFound, "definition %q does not exist%s", id, hint).With("pointer", "/definitionId")
}

// Definitions returns the definitions after a cursor, in the order of their ids.
func Definitions(ctx context.Context, d store.Doer, after string, limit int) ([]StoredDefinition, error) {
	return definitionsVerb.Do(ctx, d, definitionsArgs{after: after, limit: limit})
}

// definition returns a compiled definition, from the cache if possible.
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
		return nil, unknownDefinition(id)
	}
	def, violations := workflow.Parse(all[0].Body)
	if len(violations) > 0 {
		return nil, fault.New(fault.Internal, "stored definition %q is no longer valid: %s", id, violations[0].Message)
	}
	p = compile(def)
	k.cache(d, key, p)
	return p, nil
}

// cache caches a definition. Definitions read in a transaction are not cached, because the transaction may not commit.
func (k *Executor) cache(d store.Doer, key definitionKey, p *compiled) {
	if _, inside := d.(*store.Tx); inside {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= maxCached {
		k.all = make(map[definitionKey]*compiled)
	}
	k.all[key] = p
}

// ensure stores a definition if it is not stored yet, and returns it compiled. A cached definition is known to be stored.
func (k *Executor) ensure(ctx context.Context, d store.Doer, at store.Partition, def *workflow.Definition) (*compiled, error) {
	key := definitionKey{at, def.ID()}
	k.mu.Lock()
	p := k.all[key]
	k.mu.Unlock()
	if p != nil && (p.Definition == def || bytes.Equal(p.JSON(), def.JSON())) {
		return p, nil
	}
	if _, err := Define(ctx, d, def); err != nil {
		return nil, err
	}
	p = compile(def)
	k.cache(d, key, p)
	return p, nil
}

// planner returns a planner for the state of a run.
func (k *Executor) planner(l *ClaimedStep, def *compiled) *planner {
	c := &planner{def: def, run: l.Run, step: l.Step, retention: cmp.Or(def.Retention, k.Retention)}
	if l.memo != nil {
		c.memo = l.memo.clone() // a plan may be made twice
	} else {
		_ = json.Unmarshal(l.Run.memo, &c.memo) // cannot fail: written by this package
	}
	return c
}

// Start is a request to start a run.
type Start struct {
	Definition string
	// Declared is the definition, instead of its id. It is stored if it is not stored yet.
	Declared *workflow.Definition
	Input    []byte // JSON; nil means {}
	Key      string // the idempotency key, or ""
	// Holder takes the first step, for Lease, if Local has its handler.
	Holder string
	Lease  time.Duration
	Local  LocalHandlers
}

// Start starts a run. If the key was used before with the same definition and input, it returns that
// run; with others, the error is [fault.KeyMismatch]. If the run takes its first step for this caller at
// once, that step is leased.
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
	var def *compiled
	if s.Declared != nil {
		def, err = k.ensure(ctx, d, at, s.Declared)
	} else {
		def, err = k.definition(ctx, d, at, s.Definition)
	}
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
	if err := c.finish(); err != nil {
		return l, false, err
	}
	send, err := k.starter(d, s, &l, c)
	if err != nil {
		return l, false, err
	}
	for {
		since := clock.OfMachine()
		got, err := send(ctx)
		got.since = since
		switch {
		case err != nil:
			return l, false, err
		case got.applied:
			k.soon(d, c)
			got.moved.applied = true
			c.run.CreatedAt = got.now
			return c.after(&l, got.moved), true, nil
		case strings.HasPrefix(got.run, expiredPrefix):
			was := idPrefix + strings.TrimPrefix(got.run, expiredPrefix)
			err := fault.New(fault.KeyExpired, "key %q belongs to run %q, which has ended and was deleted after its retention: the run is not started again; for a new run, use a new key", s.Key, was)
			return l, false, note(ctx, d, was, "start", "", err.With("runId", was))
		case got.run != "":
			was, err := load(ctx, d, l.partition(), visited{run: got.run})
			if fault.CodeOf(err) == fault.NotFound {
				continue // deleted by retention
			}
			if err != nil {
				return was, false, err
			}
			return was, false, note(ctx, d, was.Run.ID, "start", "", differs(was.Run, l.Run))
		}
		// Another caller has just started it: the next attempt finds it.
	}
}

// starter returns the function that starts the run.
func (k *Executor) starter(d store.Doer, s Start, l *ClaimedStep, c *planner) (func(context.Context) (started, error), error) {
	if a, plain := c.startsAtStep(s); plain && !k.PlansOnly {
		verb := startAtStepVerb
		if a.policy != "" {
			verb = startAtOpaqueStepVerb
		}
		return func(ctx context.Context) (started, error) { return verb.DoAt(ctx, d, l.partition(), a) }, nil
	}
	text, err := c.encoded()
	a := startArgs{run: l.Run.ID, definition: l.Run.Definition, key: s.Key, input: string(s.Input), holder: s.Holder, lease: s.Lease, plan: text, names: c.names(), wakes: c.wakes, over: c.plan.Run.Over, held: s.Lease}
	return func(ctx context.Context) (started, error) { return startVerb.DoAt(ctx, d, l.partition(), a) }, err
}

// differs returns an error if a key was used for a different run.
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
	return fault.New(fault.KeyMismatch, "key %q was already used for run %q with a different %s: use a new key, or repeat the same request", was.Key, was.ID, strings.Join(what, " and ")).
		With("differs", what).With("runId", was.ID)
}

// MaxKey is the maximum length of a key.
const MaxKey = 255

// CheckKey returns an error unless key consists of 1 to 255 printable characters.
func CheckKey(key string) error {
	return strictjson.Text("idempotencyKey", key, MaxKey)
}

// soon calls Later, except in a transaction, whose commit is up to the caller.
func (k *Executor) soon(d store.Doer, c *planner) {
	if _, inside := d.(*store.Tx); !inside && k.Later != nil && c.later > 0 {
		k.Later(c.later)
	}
}

// Taker is the holder of the step that a plan takes.
type Taker struct {
	Holder    string
	Lease     time.Duration
	Elsewhere bool // remote: it is quiet until its first call
}

// maxAttempts limits how often a plan is made for a run that changes concurrently.
const maxAttempts = 50

// errChanged means that a run has changed and must be read again.
var errChanged = errors.New("the run changed concurrently")

// movedOn reports whether an error means that another caller changed the run or its step first.
func movedOn(err error) bool {
	return errors.Is(err, errChanged) || fault.CodeOf(err) == fault.LeaseLost
}

// once makes one plan for a run. It returns false if another caller was first.
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

// try makes a plan for a run and applies it.
func (k *Executor) try(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner) error) (ClaimedStep, error) {
	def, err := k.definition(ctx, d, l.partition(), l.Run.Definition)
	if err != nil {
		return *l, err
	}
	c := k.planner(l, def)
	if err := f(c); err != nil {
		return *l, err
	}
	m, err := k.apply(ctx, d, l, c, by)
	switch {
	case err != nil:
		return *l, err
	case m.applied:
		k.soon(d, c)
		return c.after(l, m), nil
	case m.version == l.Run.Version: // the run is unchanged, so the step differs
		return *l, lostStep(l)
	}
	return *l, errChanged
}

// holding applies a plan under a lease, and retries it while others change the run. If the lease is lost, it returns
// [fault.LeaseLost].
func (k *Executor) holding(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner) error) (ClaimedStep, error) {
	if !l.taken && l.Step.Holder == "" || l.Step.Status != Running {
		return *l, lostStep(l)
	}
	for range maxAttempts {
		next, err := k.try(ctx, d, l, by, f)
		if !errors.Is(err, errChanged) {
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
	return *l, fault.New(fault.Unavailable, "run %q changed concurrently during every attempt: try again", l.Run.ID).AsRetryable()
}

// end ends a step under its lease. Ending it again returns the same result if it ended the same way under its epoch.
func (k *Executor) end(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, f func(*planner) error, same func(Step) bool) (ClaimedStep, error) {
	next, lost := k.holding(ctx, d, l, by, f)
	if fault.CodeOf(lost) != fault.LeaseLost {
		return next, lost
	}
	now, err := l.Now(ctx, d)
	if fault.CodeOf(err) == fault.NotFound {
		return *l, l.late(ctx, d, "settle", lost)
	}
	if err != nil {
		return *l, errors.Join(l.late(ctx, d, "settle", lost), err)
	}
	if now.Step.Epoch == l.Step.Epoch && now.Step.Holder == "" && same(now.Step) {
		now.again = true
		return now, nil
	}
	return now, l.late(ctx, d, "settle", lost)
}
