package lifecycleengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/handlers"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A lifecycle can also be put through the API, into one workspace; its handlers are
// then not functions of a program but URLs, declared in the workspace too. What is
// written stays the same: a node reads the config and the handlers, makes of them what
// a program would have brought, and goes by it as long as the registry's revision is
// the one that it read them at. Whoever changes either raises the revision.

// ErrUnheard is the error of a handler elsewhere whose answer was not heard: it may
// have acted.
var ErrUnheard = errors.New("the handler's answer was not heard")

// Caller calls a handler elsewhere.
type Caller func(context.Context, RemoteCall) (RemoteAnswer, error)

// RemoteCall is what a handler elsewhere is told.
type RemoteCall struct {
	To handlers.Handler
	remote.Task
}

// RemoteAnswer is what it answers. State is a merge patch of the entity's data.
type RemoteAnswer struct {
	State  json.RawMessage
	Output json.RawMessage
	// Told says that the answer to a probe is there, which is Happened.
	Told, Happened bool
}

// ServePut has an engine serve lifecycles that are put through the API. It is called before the engine runs.
func ServePut(e *engine.Engine, r Caller) error {
	b := boardOf(e)
	if b.door != nil {
		return fault.New(fault.Conflict, "an engine has one door")
	}
	b.door = &door{board: b, remote: r, worker: reactions.CallingWorker(e), sites: make(map[spaced]*kept), known: make(map[string][]string), served: make(map[string]bool), since: make(map[int16]int64)}
	b.start()
	e.Background(b.door.learn)
	handlers.Watch(e)
	return nil
}

type spaced struct{ workspace, name string }

// kept is a lifecycle as it was read at a revision of its registry.
type kept struct {
	revision int64
	site     *site
}

// door is the lifecycles of an engine that were put through the API.
type door struct {
	board  *board
	remote Caller
	worker *reactions.Worker // serves after-effects that are URLs
	// urls are the handlers that are URLs, in whatever workspace. The worker asks for
	// them under its own lock, so there is none here.
	urls atomic.Pointer[map[string]bool]

	mu     sync.Mutex
	sites  map[spaced]*kept
	known  map[string][]string // names, in whatever workspace, and the claim statuses that they ever had
	served map[string]bool     // after-effects
	since  map[int16]int64     // up to when each shard was read
}

// mostSites is how many lifecycles are remembered.
const mostSites = 10_000

// site returns a lifecycle of the context's workspace.
func (d *door) site(ctx context.Context, name string) (*site, error) {
	e := d.board.engine
	at, err := e.Place(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	g, err := e.Registry(ctx, at, true) // what is remembered may be of yesterday
	if err != nil {
		return nil, err
	}
	key := spaced{at.Workspace, name}
	d.mu.Lock()
	k := d.sites[key]
	d.mu.Unlock()
	if k != nil && k.revision == g.Revision {
		return k.site, nil
	}
	now, err := readConfigVerb.DoAt(ctx, e, at, name)
	if err != nil {
		return nil, err
	}
	if now.revision == 0 || now.origin != "door" {
		return nil, unknown(name)
	}
	s, err := d.build(ctx, []byte(now.config), nil)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sites) >= mostSites {
		clear(d.sites)
	}
	d.sites[key] = &kept{g.Revision, s}
	return s, nil
}

// build makes of a config and the handlers of the context's workspace what a program
// would have brought.
// more are handlers, by kind, besides those that the config names.
func (d *door) build(ctx context.Context, text []byte, more map[string][]string) (*site, error) {
	c, violations := lifecycles.Parse(text)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	s := &site{engine: d.board.engine, board: d.board, turn: make(chan struct{}, 1)}
	s.Lifecycle = &Lifecycle{config: c, text: string(text), handlers: make(map[string]*handler), workspaces: []string{store.WorkspaceOf(ctx)}, bound: s}
	s.ground = &plain{site: s}
	for kind, names := range named(c) {
		for _, name := range append(names, more[kind]...) {
			h, err := handlers.Get(ctx, d.board.engine, name)
			if fault.CodeOf(err) == fault.NotFound {
				s.handlers[name] = undeclared(kind, name)
				continue
			}
			if err != nil {
				return nil, err
			}
			s.handlers[name] = d.handler(kind, c, store.WorkspaceOf(ctx), h)
			if kind == "afterEffect" {
				s.afters = append(s.afters, afterElsewhere(c, name))
			}
		}
	}
	return s, nil
}

// undeclared is a handler that a config names and nobody has declared: a step that
// needs it is refused.
func undeclared(kind, name string) *handler {
	return &handler{Handler: lifecycles.Handler{Kind: kind}, name: name, missing: true, body: func(context.Context, *work) error {
		return fault.NonRetryable(fault.New(fault.Unavailable, "the handler %q is not declared", name))
	}}
}

// named are the handlers that a config names, by kind.
func named(c *lifecycles.Config) map[string][]string {
	all := make(map[string]map[string]bool)
	for i := range c.Steps {
		for kind, p := range map[string]lifecycles.Per[string]{"action": c.Steps[i].Action, "validation": c.Steps[i].Validation, "afterEffect": c.Steps[i].AfterEffect} {
			if all[kind] == nil {
				all[kind] = make(map[string]bool)
			}
			if p.All != nil {
				all[kind][*p.All] = true
			}
			for _, name := range p.By {
				all[kind][name] = true
			}
		}
	}
	out := make(map[string][]string)
	for kind, names := range all {
		delete(names, "")
		out[kind] = slices.Sorted(maps.Keys(names))
	}
	return out
}

// handler makes a handler of one that is elsewhere.
func (d *door) handler(kind string, c *lifecycles.Config, workspace string, h handlers.Handler) *handler {
	if h.Kind == "worker" {
		return &handler{Handler: lifecycles.Handler{Kind: kind, Safety: lifecycles.Safety(h.Safety), Timeout: h.Timeout}, name: h.Name,
			queue: entities.Workers(workspace, h.Name), unknown: effects.Policy(h.OnUnknown)}
	}
	return &handler{Handler: lifecycles.Handler{Kind: kind, Safety: lifecycles.Safety(h.Safety), Timeout: h.Timeout}, name: h.Name, unknown: effects.Policy(h.OnUnknown),
		body: func(ctx context.Context, w *work) error {
			var err error
			call := RemoteCall{h, remote.Task{Kind: kind, Lifecycle: c.Workflow, Entity: &w.entity, StepKey: w.step, Requester: w.requester,
				Operation: w.operation, Epoch: w.entity.Claim.Epoch, Attempt: w.attempt, Input: w.input}}
			var a RemoteAnswer
			if kind == "action" && w.doubtful && h.OnUnknown == string(effects.Probe) {
				if a, err = d.probe(ctx, call); err != nil {
					return err
				}
				w.cleared = !a.Happened
			}
			if w.cleared && w.held != nil { // the question may have taken long
				if err := w.held(ctx); err != nil {
					return err
				}
			}
			if !a.Happened {
				a, err = d.remote(ctx, call)
			}
			switch kind {
			case "action":
				w.output = a.Output
			case "afterEffect":
				err = retriable(err, c.AfterEffects[h.Name])
			}
			if err != nil || len(a.State) == 0 || kind != "action" {
				return err
			}
			if w.data, err = strict.Merge(w.entity.Data, a.State); err != nil { // it has acted, whatever it answers
				return fmt.Errorf("%w: what it answered cannot be used: %w", ErrUnheard, err)
			}
			return nil
		}}
}

// probe asks a handler whether it has acted, on an earlier attempt. Whatever is no
// answer to that leaves it open.
func (d *door) probe(ctx context.Context, call RemoteCall) (RemoteAnswer, error) {
	call.Kind = kindProbe
	a, err := d.remote(ctx, call)
	if err == nil && !a.Told {
		err = errors.New("it did not say whether it has acted (happened)")
	}
	if err != nil {
		err = fault.New(fault.Unavailable, "the handler %q was asked whether it has acted: %s", call.To.Name, err).Wrap(ErrUnheard)
	}
	return a, err
}

// names returns the lifecycles that were put into the context's workspace.
func (d *door) names(ctx context.Context) ([]string, error) {
	at, err := d.board.engine.Place(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	all, err := doorsVerb.DoAt(ctx, d.board.engine, at, doorsArgs{limit: mostSites})
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = x.name
	}
	return out, err
}

type doorsArgs struct {
	since int64
	limit int
}

type putThrough struct {
	workspace, name, config string
	at                      int64
}

var doorsVerb = store.NewVerb(store.Decl{Name: "lifecycles.doors", Lane: store.Read}, nil,
	func(a doorsArgs, args *store.Args) { args.Int("since", a.since); args.Int("limit", int64(a.limit)) },
	func(all *[]putThrough, row store.Row) error {
		var p putThrough
		err := row.Scan(&p.workspace, &p.name, &p.config, &p.at)
		*all = append(*all, p)
		return err
	})

// How far a node looks back for lifecycles that others have put, in ms: a transaction
// that began earlier may commit later.
const (
	lookBack  = 60_000
	learnPage = 500
)

// learn finds the lifecycles that were put, on whatever node, until ctx ends: this
// node resumes their operations, frees what is left of them, and runs their
// after-effects.
func (d *door) learn(ctx context.Context) {
	ticks := time.NewTicker(handlers.LearnEvery)
	defer ticks.Stop()
	woken, end := d.board.engine.Hub().Wait(handlers.Topic)
	defer end()
	for {
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.board.engine.Log().Warn("lifecycles that were put through the API could not be read", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-ticks.C:
		}
	}
}

func (d *door) look(ctx context.Context) error {
	urls, err := handlers.URLs(ctx, d.board.engine)
	if err != nil {
		return err
	}
	d.urls.Store(&urls)
	handled, err := reactions.AllHandled(ctx, d.board.engine, "http")
	if err != nil {
		return err
	}
	for _, x := range handled { // also those that no config names any more
		if (After{}).Is(x.Info) {
			if err := d.serve(workflowOf(x.Info), x.Options.Handler, x.Definition); err != nil {
				return err
			}
		}
	}
	shards, err := store.Shards(ctx, d.board.engine)
	for _, shard := range shards {
		d.mu.Lock()
		since := d.since[shard]
		d.mu.Unlock()
		from, limit := max(0, since-lookBack), learnPage
		for {
			page, failed := doorsVerb.DoAt(ctx, d.board.engine, store.Place{Shard: shard}, doorsArgs{from, limit})
			if failed != nil {
				return errors.Join(err, failed)
			}
			last := from
			for _, p := range page {
				last = max(last, p.at)
				err = errors.Join(err, d.meet(p))
			}
			d.mu.Lock()
			d.since[shard] = max(d.since[shard], last)
			d.mu.Unlock()
			if len(page) < limit {
				break
			}
			if last == from { // all of them at once: a larger page gets past them
				limit *= 2
			}
			from = last
		}
	}
	return err
}

// meet makes a lifecycle known to the loops of this node.
func (d *door) meet(p putThrough) error {
	c, violations := lifecycles.Parse([]byte(p.config))
	if len(violations) > 0 {
		return nil // of a later program
	}
	d.mu.Lock()
	claims := append([]string{}, d.known[p.name]...) // it is read without the lock
	for _, x := range c.Claims() {
		if !slices.Contains(claims, x.Into) {
			claims = append(claims, x.Into)
		}
	}
	d.known[p.name] = claims
	d.mu.Unlock()
	for _, name := range named(c)["afterEffect"] {
		if err := d.serve(c.Workflow, name, afterElsewhere(c, name)); err != nil {
			return err
		}
	}
	return nil
}

// afterElsewhere is the reaction that an after-effect is whose handler is elsewhere.
func afterElsewhere(c *lifecycles.Config, name string) reactions.Definition {
	def := afterEffect(c.Workflow, name, c.AfterEffects[name].Filled())
	def.Options.Handler = name
	return def
}

// serve has the node serve an after-effect where its handler is a URL, in whatever
// workspace it is. Workers ask for theirs.
func (d *door) serve(workflow, name string, def reactions.Definition) error {
	d.mu.Lock()
	served := d.served[def.Name]
	d.served[def.Name] = true
	d.mu.Unlock()
	if served {
		return nil
	}
	h := &reactions.Handler{Every: true, Definition: def, Kind: "http", Timeout: 2 * handlers.Longest,
		Ready: func() bool {
			urls := d.urls.Load()
			return urls != nil && (*urls)[name]
		},
		Body: func(ctx context.Context, x *reactions.Delivery) error {
			s, err := d.site(ctx, workflow)
			if err == nil {
				s, err = s.knowing(ctx, map[string]string{"afterEffect": name})
			}
			if err != nil {
				return err
			}
			h := s.handlers[name]
			if h == nil || h.body == nil { // it was declared anew, just now
				return &reactions.Later{}
			}
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, hold.Timeout))
			defer cancel()
			return Counted(s.after(ctx, h, x))
		}}
	if err := d.worker.Add(h); err != nil {
		d.mu.Lock()
		delete(d.served, def.Name)
		d.mu.Unlock()
		return err
	}
	return nil
}

// Counted makes a failure of a call whose answer was not heard: it is known to have
// been tried, and counts.
func Counted(err error) error {
	if errors.Is(err, ErrUnheard) {
		return fault.New(fault.ActionFailed, "%s", err)
	}
	return err
}

// putThrough returns the lifecycles that were put, as far as this node knows, without those
// that the program has itself, with their claim statuses in whatever workspace.
func (b *board) putThrough() map[string][]string {
	all := make(map[string][]string)
	if b.door == nil {
		return all
	}
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	for name, claims := range b.door.known {
		if b.site(name) == nil {
			all[name] = claims
		}
	}
	return all
}

// overdue gives up what no worker came for, of lifecycles that were put.
func (b *board) overdue(ctx context.Context, shards []int16) (ended int, err error) {
	names := slices.Sorted(maps.Keys(b.putThrough()))
	if len(names) == 0 {
		return 0, nil
	}
	for _, shard := range shards {
		found, failed := entities.Overdue(ctx, b.engine, shard, names)
		err = errors.Join(err, failed)
		for _, l := range found {
			yes := false
			s, failed := b.find(store.InWorkspace(ctx, l.Workspace), l.Lifecycle)
			if failed == nil {
				yes, failed = s.giveUp(ctx, l)
			}
			if err = errors.Join(err, failed); yes {
				ended++
			}
		}
	}
	return ended, err
}

// RevisionOf returns the revision of a lifecycle's config in the context's workspace, or 0.
func RevisionOf(ctx context.Context, e *engine.Engine, name string) (int64, error) {
	at, err := e.Place(ctx, store.Read)
	if err != nil {
		return 0, err
	}
	now, err := readConfigVerb.DoAt(ctx, e, at, name)
	return now.revision, err
}

// Put is what became of a config that was put.
type Put struct {
	Revision int64
	Created  bool
	Warnings []lifecycles.Violation
}

// PutConfig puts a config into the context's workspace, or, with dryRun, only judges
// it. The error tells every violation.
func PutConfig(ctx context.Context, e *engine.Engine, name string, config []byte, dryRun bool) (Put, error) {
	b := boardOf(e)
	if b.door == nil {
		return Put{}, fault.New(fault.Conflict, "this program takes no lifecycles through the API")
	}
	if b.site(name) != nil {
		return Put{}, fault.New(fault.Conflict, "there is a lifecycle %q already, which a program has brought", name)
	}
	s, warnings, err := b.door.judge(ctx, name, config)
	if err != nil || dryRun {
		return Put{Warnings: warnings}, err
	}
	at, err := e.Place(ctx, store.Write)
	if err != nil {
		return Put{}, err
	}
	if err := notOf(ctx, e, "program", name); err != nil {
		return Put{}, err
	}
	before, err := readConfigVerb.DoAt(ctx, e, at, name)
	if err != nil {
		return Put{}, err
	}
	if err := s.enlist(ctx, true); err != nil {
		return Put{}, err
	}
	if err := b.door.meet(putThrough{name: name, config: string(config)}); err != nil {
		return Put{}, err
	}
	now, err := readConfigVerb.DoAt(ctx, e, at, name)
	return Put{Revision: now.revision, Created: before.revision == 0, Warnings: warnings}, err
}

// unclaimedWork tells of handlers of a step that are workers', for requesters who do not
// claim it: a task is its claim.
func unclaimedWork(s *site, nth int) (all []lifecycles.Violation) {
	step := &s.config.Steps[nth]
	tell := func(what, name, requester string) {
		h := s.handlers[name]
		if _, claimed := step.Claim.For(requester); h == nil || h.queue == "" || claimed {
			return
		}
		all = append(all, lifecycles.Violation{Rule: "worker", Path: fmt.Sprintf("/steps/%d/%s", nth, what),
			Message: fmt.Sprintf("the %s %q of the step %q is done by workers, and a step that they do is claimed: name a successful_claim_state", what, name, step.Key)})
	}
	for what, p := range map[string]lifecycles.Per[string]{"action": step.Action, "validation": step.Validation} {
		if p.All != nil {
			tell(what, *p.All, "")
		}
		for requester, name := range p.By {
			tell(what, name, requester)
		}
	}
	return all
}

// PutNames returns the lifecycles that were put into the context's workspace, and the
// handlers that each of them names.
func PutNames(ctx context.Context, d store.Doer) (map[string][]string, error) {
	at, err := d.Place(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	all, err := doorsVerb.DoAt(ctx, d, at, doorsArgs{limit: mostSites})
	names := make(map[string][]string, len(all))
	for _, x := range all {
		names[x.name] = HandlersOf([]byte(x.config))
	}
	return names, err
}

// HandlersOf returns the handlers that a config names, or none if it is no config.
func HandlersOf(config []byte) (names []string) {
	c, violations := lifecycles.Parse(config)
	if len(violations) > 0 {
		return nil
	}
	for _, some := range named(c) {
		names = append(names, some...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judge holds a config to every rule that can be seen here.
func (d *door) judge(ctx context.Context, name string, config []byte) (*site, []lifecycles.Violation, error) {
	c, violations := lifecycles.Parse(config)
	if len(violations) > 0 {
		return nil, nil, refused(violations)
	}
	s, err := d.build(ctx, config, nil)
	if err != nil {
		return nil, nil, err
	}
	known := make(map[string]lifecycles.Handler, len(s.handlers))
	for name, h := range s.handlers {
		if !h.missing {
			known[name] = h.Handler
		}
	}
	violations, warnings := c.Lint(known)
	if c.Workflow != name {
		violations = append(violations, lifecycles.Violation{Rule: "name", Path: "/workflow", Message: fmt.Sprintf("the config is of %q, and is put as %q", c.Workflow, name)})
	}
	for i := range c.Steps {
		violations = append(violations, unclaimedWork(s, i)...)
	}
	if c.Table != nil {
		violations = append(violations, lifecycles.Violation{Rule: "table", Path: "/entity_table", Message: "a table of the user's own is named in a program, not through the API"})
	}
	if err := s.covered(); err != nil {
		violations = append(violations, lifecycles.Violation{Rule: "coverage", Path: "/janitor", Message: fault.New(fault.Validation, "%s", err).Message})
	}
	if len(violations) > 0 {
		return nil, warnings, refused(violations)
	}
	return s, warnings, nil
}
