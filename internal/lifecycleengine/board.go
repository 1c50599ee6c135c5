package lifecycleengine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/attempts"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// board is all lifecycles of an engine: one poll resumes the operations of all, and
// one janitor frees what crashes left of all.
type board struct {
	engine  *engine.Engine
	log     *attempts.Log
	refusal atomic.Int64

	mu     sync.Mutex
	sites  map[string]*site
	behind map[int16][3]string  // how far each shard was looked through for strays
	swept  map[string]time.Time // when a lifecycle's own time to sweep last came

	door *door // set before the engine runs, if at all
	once sync.Once
}

type boardKey struct{}

func boardOf(e *engine.Engine) *board {
	return e.Shared(boardKey{}, func() any {
		return &board{engine: e, log: attempts.NewLog(e), sites: make(map[string]*site), behind: make(map[int16][3]string), swept: make(map[string]time.Time)}
	}).(*board)
}

// add makes a lifecycle known. The first starts what serves all.
func (b *board) add(s *site) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := s.config.Workflow
	if b.sites[name] != nil {
		return fault.New(fault.Conflict, "two lifecycles are named %q", name)
	}
	b.sites[name] = s
	b.start()
	return nil
}

// start starts what serves all lifecycles.
func (b *board) start() {
	b.once.Do(func() {
		transition.Register(b.engine, firer{b})
		b.engine.Background(b.resume)
		b.engine.Leases("operations", b.expire, wake.Need{Kind: wake.HeldOperation})
		b.engine.Sweep("lifecycles", b.adopt)
		b.engine.Sweep("attempts", func(ctx context.Context) (int, error) { return attempts.Prune(ctx, b.engine) },
			wake.Need{Kind: wake.OldAttempt, Name: strconv.FormatInt(attempts.Kept.Milliseconds(), 10)})
	})
}

func (b *board) site(name string) *site {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sites[name]
}

// names returns the lifecycles, by rising name.
func (b *board) names() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.sites {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// refused counts and notes a refusal.
func (b *board) refused(at store.Place, a attempts.Attempt) {
	b.refusal.Add(1)
	b.log.Note(at, a)
}

// Refused is how many tries this engine has refused, because another was in
// progress or had come first.
func Refused(e *engine.Engine) int64 { return boardOf(e).refusal.Load() }

// resumers is how many operations a node resumes at once.
const resumers = 8

// resume resumes operations until ctx ends, and waits for those that run.
func (b *board) resume(ctx context.Context) {
	defer b.log.Flush()
	again := "operations/" + b.engine.Node()
	r := &resuming{room: hold.NewRoom(resumers, b.engine.Alone, func() { b.engine.Hub().WakeHere(again) }), rounds: make(map[int16]*hold.Round)}
	defer r.running.Wait()
	topics := []string{again}
	for _, name := range b.names() {
		topics = append(topics, entities.Topic(name))
	}
	p := wake.Poller{Hub: b.engine.Hub(), Topics: topics, Log: b.engine.Log(), Needs: b.needs, Look: func(ctx context.Context) (bool, error) {
		return b.look(ctx, r)
	}}
	p.Run(ctx)
}

// resuming is what looks for operations remember of each other.
type resuming struct {
	room    *hold.Room
	rounds  map[int16]*hold.Round
	running sync.WaitGroup
}

func (b *board) look(ctx context.Context, r *resuming) (found bool, err error) {
	shards, err := store.Shards(ctx, b.engine)
	if err != nil {
		return false, err
	}
	leases := b.leases()
	for _, shard := range shards {
		if r.rounds[shard] == nil {
			r.rounds[shard] = new(hold.Round)
		}
		if err := r.room.Wait(ctx); err != nil {
			return found, nil
		}
		turns, err := r.rounds[shard].Next(ctx, b.engine, entities.Turns, shard, slices.Collect(maps.Keys(leases)), r.room.ShutWorkspaces())
		if err != nil {
			return found, err
		}
		found = found || !r.rounds[shard].Whole()
		byWorkspace := make(map[string][]hold.Turn)
		for _, t := range turns {
			byWorkspace[t.Workspace] = append(byWorkspace[t.Workspace], t)
		}
		workspaces := slices.Sorted(maps.Keys(byWorkspace))
		hold.InTurn(&r.room.Order, workspaces, func(w string) string { return w })
		for i, w := range workspaces {
			some, err := b.takeFrom(ctx, shard, r, hold.Share{Workspace: w}, (r.room.Left()-1)/(len(workspaces)-i)+1, entities.ResumeArgs{Turns: byWorkspace[w], Leases: leases, Holder: b.engine.Node()})
			found = found || some
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// takeFrom takes up to n operations of a workspace, as far as there is room for it, and resumes them.
func (b *board) takeFrom(ctx context.Context, shard int16, r *resuming, s hold.Share, n int, a entities.ResumeArgs) (found bool, err error) {
	if a.Limit = r.room.Take(s, n); a.Limit == 0 {
		return false, nil
	}
	since := clock.OfMachine()
	some, err := entities.TakeDue(context.WithoutCancel(ctx), b.engine, shard, a)
	r.room.Free(s, a.Limit-len(some))
	for _, x := range some {
		r.running.Go(func() {
			defer r.room.Free(s, 1)
			b.take(ctx, shard, x, since)
		})
	}
	return len(some) > 0, err
}

// leases are the queues that this node takes operations of, and for how long.
func (b *board) leases() map[string]time.Duration {
	leases := make(map[string]time.Duration)
	for _, name := range b.names() {
		leases[entities.Own(name)] = b.site(name).lease(new(asked))
	}
	for name := range b.putThrough() {
		leases[entities.Own(name)] = hold.Lease
	}
	return leases
}

func (b *board) needs() []wake.Need {
	return wake.Needs(wake.Operation, slices.Collect(maps.Keys(b.leases()))...)
}

// take resumes one operation, which was taken after since.
func (b *board) take(ctx context.Context, shard int16, r entities.Resumed, since time.Time) {
	ctx = store.InWorkspace(ctx, r.Workspace)
	at := store.Place{Shard: shard, Workspace: r.Workspace}
	log := b.engine.Log().With("lifecycle", r.Lifecycle, "entity", r.ID, "operation", r.Claim.Operation, "step", r.Claim.Step)
	s, err := b.find(ctx, r.Lifecycle)
	if err != nil { // the hold runs out, and somebody tries again
		log.Warn("an operation could not be resumed", "error", err)
		return
	}
	s, step, err := s.planned(ctx, r.Claim.Plan, r.Claim.Step, r.Claim.Requester, r.Claim.Revert)
	if err != nil {
		log.Warn("an operation could not be resumed", "error", err)
		return
	}
	why := "the config has no such step any more"
	if step != nil {
		if name := s.lacks(step, r.Claim.Requester); name != "" {
			step, why = nil, "there is no handler "+strconv.Quote(name)+" any more"
		}
	}
	if step == nil {
		_, err := s.ground.end(ctx, at, entities.EndArgs{Ticket: r.Ticket(), How: entities.Park, Event: "released", Outcome: "failed", Message: why}, r.Status, nil)
		log.Error("an operation cannot be resumed: "+why, "error", err)
		return
	}
	t := &attempt{site: s, at: at, entity: r.Entity, claim: r.Status, step: step, opaque: s.opaque(step, r.Claim.Requester), lease: s.lease(new(asked)), since: since, resumed: true}
	e, err := t.refreshed(ctx)
	if err == nil {
		err = s.ready(ctx)
	}
	if err == nil && t.opaque && s.worker(t.step, r.Claim.Requester) == nil && (r.Claim.Stage == stageAction || !s.handsOn(t.step, r.Claim.Requester)) {
		// behind a worker's validation, or where a person has said that it did not happen
		_, err = effects.Begin(ctx, b.engine, at, r.Ticket(), effects.Body, 0, s.unknown(t.step, r.Claim.Requester), nil)
	}
	if err == nil {
		t.entity = e
		e, err = t.try(ctx)
	}
	if err != nil {
		log.Warn("a resumed operation is not done", "outcome", outcomeOf(err), "error", err)
		return
	}
	log.Info("an operation was resumed, and is done", "status", e.Status)
}

// refreshed returns the entity as its body wants to see it.
func (t *attempt) refreshed(ctx context.Context) (entities.Entity, error) {
	if t.config.Table == nil {
		return t.entity, nil
	}
	e, err := t.ground.get(ctx, t.entity.ID)
	e.Claim = t.entity.Claim
	return e, err
}

func outcomeOf(err error) any {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Fields["outcome"]
	}
	return nil
}

// expire ends the leases of operations that have expired: of all lifecycles where somebody is about to take
// them, and else of those whose own time to sweep has come.
func (b *board) expire(ctx context.Context, asked bool) (freed int, err error) {
	shards, err := store.Shards(ctx, b.engine)
	if err != nil {
		return 0, err
	}
	now, swept := clock.OfMachine(), make(map[string]bool)
	names := slices.DeleteFunc(b.names(), func(name string) bool { return !asked && !b.isDue(name, b.site(name), now) })
	names = slices.AppendSeq(names, maps.Keys(b.putThrough()))
	for _, shard := range shards {
		lapsed, failed := entities.Expired(ctx, b.engine, shard, names)
		err = errors.Join(err, failed)
		for _, l := range lapsed {
			s, key := b.site(l.Lifecycle), l.Lifecycle
			if s == nil {
				if s, failed = b.find(store.InWorkspace(ctx, l.Workspace), l.Lifecycle); failed != nil {
					if fault.CodeOf(failed) != fault.NotFound { // it is a program's, in a workspace that this node does not have it in
						err = errors.Join(err, failed)
					}
					continue
				}
				key = l.Workspace + "/" + l.Lifecycle // its config is that of the workspace, which has no slash
				if !asked && !b.isDue(key, s, now) {
					continue
				}
			}
			swept[key] = true
			yes, failed := s.free(ctx, l)
			if yes {
				freed++
			}
			err = errors.Join(err, failed) // one that fails keeps no other from being freed
		}
	}
	b.mu.Lock()
	for key := range swept {
		b.swept[key] = now
	}
	b.mu.Unlock()
	return freed, err
}

// isDue says whether the time has come to sweep a lifecycle in a workspace, as its config says; one that says
// nothing is swept each time.
func (b *board) isDue(key string, s *site, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, ok := b.swept[key]
	return !ok || s.config.Janitor == nil || now.Sub(last) >= s.config.Janitor.Every
}

// adopt holds what is in a claim status by mistake, and gives up what no worker came for.
func (b *board) adopt(ctx context.Context) (adopted int, err error) {
	for _, name := range b.names() {
		s := b.site(name)
		if now, key := clock.OfMachine(), "adopt/"+name; b.isDue(key, s, now) {
			n, failed := s.ground.adopt(ctx)
			adopted, err = adopted+n, errors.Join(err, failed)
			b.mu.Lock()
			b.swept[key] = now
			b.mu.Unlock()
		}
	}
	shards, failed := store.Shards(ctx, b.engine)
	err = errors.Join(err, failed)
	for _, shard := range shards {
		err = errors.Join(err, b.strays(ctx, shard))
	}
	given, failed := b.overdue(ctx, shards)
	return adopted + given, errors.Join(err, failed)
}

// strays looks through a page of a shard's entities for those that are in a claim
// status although nobody claimed them: somebody has edited the row. They are held,
// and put back when that has run out.
func (b *board) strays(ctx context.Context, shard int16) error {
	claims := b.putThrough() // looked at closer in the workspace of each
	for _, name := range b.names() {
		s := b.site(name)
		for _, c := range s.config.Claims() {
			if s.config.Table == nil {
				claims[name] = append(claims[name], c.Into)
			}
		}
	}
	if len(claims) == 0 {
		return nil
	}
	b.mu.Lock()
	from := b.behind[shard]
	b.mu.Unlock()
	found, next, err := entities.Strays(ctx, b.engine, shard, claims, from)
	if err == nil && next == ([3]string{}) && from != next { // at the end: it begins again
		found, next, err = entities.Strays(ctx, b.engine, shard, claims, next)
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.behind[shard] = next
	b.mu.Unlock()
	for _, f := range found {
		ctx := store.InWorkspace(ctx, f.Workspace)
		s, failed := b.site(f.Lifecycle), error(nil)
		if s == nil {
			s, failed = b.find(ctx, f.Lifecycle)
		}
		if fault.CodeOf(failed) == fault.NotFound { // it is another workspace's
			continue
		}
		if failed == nil {
			failed = s.adoptOne(ctx, b.engine, store.Place{Shard: shard, Workspace: f.Workspace}, f.ID, f.Status)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// adoptOne holds an entity that is in a claim status by mistake, unless the config in force has it for
// another: this node may be of before, and who stands there is where it should be.
func (s *site) adoptOne(ctx context.Context, d store.Doer, at store.Place, id, status string) error {
	for _, c := range s.config.Claims() {
		if c.Into != status {
			continue
		}
		yes, err := entities.Adopt(ctx, d, at, s.config.Workflow, id, entities.Choice{Into: c.Into, Revert: c.Revert}, found, s.stuckAfter())
		if yes {
			s.engine.Log().Warn("an entity is in a claim status although nobody claimed it: it is put back later", "lifecycle", s.config.Workflow,
				"entity", id, "status", status, "after", s.stuckAfter())
		}
		if fault.CodeOf(err) == fault.Concurrency {
			return nil
		}
		return err
	}
	return nil
}

// found is the holder of what was found in a claim status.
const found = "nobody: it was found in this status"
