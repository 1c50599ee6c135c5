package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// resumers limits how many operations a node resumes concurrently.
const resumers = 8

// resume resumes operations until ctx ends, and waits for those in flight.
func (b *registry) resume(ctx context.Context) {
	again := "operations/" + b.engine.Node() // woken when capacity becomes free
	r := &resuming{capacity: lease.NewCapacity(resumers, b.engine.SingleWorkspace, func() { b.engine.Hub().WakeHere(again) }), rounds: make(map[int16]*lease.Round)}
	defer r.running.Wait()
	topics := []string{again}
	for _, name := range b.names() {
		topics = append(topics, entities.Topic(name))
	}
	p := wake.Poller{Hub: b.engine.Hub(), Topics: topics, Log: b.engine.Log(), WorkKinds: b.workKinds, Poll: func(ctx context.Context) (bool, error) {
		return b.poll(ctx, r)
	}}
	p.Run(ctx)
}

// resuming is the state that successive polls share.
type resuming struct {
	capacity *lease.Capacity
	rounds   map[int16]*lease.Round
	running  sync.WaitGroup
}

func (b *registry) poll(ctx context.Context, r *resuming) (found bool, err error) {
	shards, err := store.Shards(ctx, b.engine)
	if err != nil {
		return false, err
	}
	leases := b.leases()
	for _, shard := range shards {
		if r.rounds[shard] == nil {
			r.rounds[shard] = new(lease.Round)
		}
		if err := r.capacity.Wait(ctx); err != nil {
			return found, nil
		}
		// the turns of workspaces that have due operations, except workspaces that have used up their capacity
		turns, err := r.rounds[shard].Next(ctx, b.engine, entities.Turns, shard, slices.Collect(maps.Keys(leases)), r.capacity.ShutWorkspaces())
		if err != nil {
			return found, err
		}
		found = found || !r.rounds[shard].Whole() // more workspaces have work: poll again
		byWorkspace := make(map[string][]lease.Turn)
		for _, t := range b.servedTurns(turns) {
			byWorkspace[t.Workspace] = append(byWorkspace[t.Workspace], t)
		}
		workspaces := slices.Sorted(maps.Keys(byWorkspace))
		// The workspace served longest ago comes first. Each gets an equal share, rounded up, of what the earlier ones left.
		lease.InTurn(&r.capacity.Order, workspaces, func(w string) string { return w })
		for i, w := range workspaces {
			some, err := b.takeFrom(ctx, shard, r, lease.Share{Workspace: w}, (r.capacity.Left()-1)/(len(workspaces)-i)+1, entities.ResumeArgs{Turns: byWorkspace[w], Leases: leases, Holder: b.engine.Node()})
			found = found || some
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// takeFrom takes up to n operations of a workspace, as far as its capacity allows, and resumes them.
func (b *registry) takeFrom(ctx context.Context, shard int16, r *resuming, s lease.Share, n int, a entities.ResumeArgs) (found bool, err error) {
	if a.Limit = r.capacity.Take(s, n); a.Limit == 0 {
		return false, nil
	}
	since := clock.OfMachine()
	some, err := entities.TakeDue(context.WithoutCancel(ctx), b.engine, shard, a)
	r.capacity.Free(s, a.Limit-len(some))
	for _, x := range some {
		r.running.Go(func() {
			defer r.capacity.Free(s, 1)
			b.resumeOne(ctx, shard, x, since)
		})
	}
	return len(some) > 0, err
}

// step takes one due operation of a workspace and resumes it. It is the [engine.Step] of the loop resume.
func (b *registry) step(ctx context.Context, at store.Partition) (found bool, err error) {
	a := entities.ResumeArgs{Leases: b.leases(), Holder: b.engine.Node(), Limit: 1}
	for _, queue := range slices.Sorted(maps.Keys(a.Leases)) {
		a.Turns = append(a.Turns, lease.Turn{Name: queue, Workspace: at.Workspace})
	}
	a.Turns = b.servedTurns(a.Turns)
	since := clock.OfMachine()
	some, err := entities.TakeDue(context.WithoutCancel(ctx), b.engine, at.Shard, a)
	for _, x := range some {
		b.resumeOne(ctx, at.Shard, x, since)
	}
	return len(some) > 0, err
}

// leases returns the lifecycles whose due operations this node takes, by the names of their queues, with their lease
// durations.
func (b *registry) leases() map[string]time.Duration {
	leases := make(map[string]time.Duration)
	for _, name := range b.names() {
		leases[entities.QueueOf(name)] = b.boundTo(name).lease(0)
	}
	for name := range b.publishedClaims() {
		leases[entities.QueueOf(name)] = lease.DefaultDuration
	}
	return leases
}

func (b *registry) workKinds() []wake.WorkKind {
	return wake.WorkKinds(wake.Operation, slices.Collect(maps.Keys(b.leases()))...)
}

// resumeOne resumes one operation, which was taken after since.
func (b *registry) resumeOne(ctx context.Context, shard int16, r entities.Resumed, since time.Time) {
	ctx = store.InWorkspace(ctx, r.Workspace)
	at := store.Partition{Shard: shard, Workspace: r.Workspace}
	log := b.engine.Log().With("workspace", r.Workspace, "lifecycle", r.Lifecycle, "entity", r.ID, "operation", r.Claim.Operation, "epoch", r.Claim.Epoch, "step", r.Claim.Step)
	s, err := b.find(ctx, r.Lifecycle)
	if err != nil { // the lease expires, and the operation is taken again
		log.Warn("failed to resume operation", "error", err)
		return
	}
	s, step, err := s.planned(ctx, r.Claim.Plan, r.Claim.Step, r.Claim.Requester, r.Claim.Revert)
	if err != nil {
		log.Warn("failed to resume operation", "error", err)
		return
	}
	why := "the config no longer has this step"
	if step != nil {
		if name := s.absentHandler(step, r.Claim.Requester); name != "" {
			step, why = nil, "handler "+strconv.Quote(name)+" no longer exists"
		}
	}
	if step == nil {
		_, err := s.store.end(ctx, at, entities.EndArgs{Ticket: r.Ticket(), How: entities.Park, Event: "released", Outcome: "failed", Message: why}, r.Status, nil)
		log.Error("operation cannot be resumed", "reason", why, "error", err)
		return
	}
	t := &attempt{bound: s, at: at, entity: r.Entity, claim: r.Status, step: step, opaque: s.opaque(step, r.Claim.Requester), lease: s.lease(0), since: since, resumed: true}
	e, err := t.refreshed(ctx)
	if err == nil {
		err = s.ready(ctx)
	}
	if err == nil && t.opaque && s.worker(t.step.Action, r.Claim.Requester) == nil && (r.Claim.Stage == stageAction || !s.usesWorkers(t.step, r.Claim.Requester)) {
		// An opaque body counts as an effect. Its beginning is recorded here if the claim did not record it: after a
		// worker's validation, or after an operator reported that the body did not act.
		_, err = effects.Begin(ctx, b.engine, at, r.Ticket(), effects.Body, 0, s.unknown(t.step, r.Claim.Requester), nil)
	}
	if err == nil {
		t.entity = e
		e, err = t.try(ctx)
	}
	if err != nil {
		log.Warn("resumed operation did not succeed", "outcome", outcomeField(err), "error", err)
		return
	}
	log.Info("resumed operation succeeded", "status", e.Status)
}

// outcomeField returns the field "outcome" of an error, or nil.
func outcomeField(err error) any {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Fields["outcome"]
	}
	return nil
}

// expire ends the expired leases of operations. With onDemand, because a caller is about to take them, it covers
// all lifecycles; otherwise only those whose own sweep interval has passed.
func (b *registry) expire(ctx context.Context, onDemand bool) (freed int, err error) {
	partitions, err := store.Partitions(ctx, b.engine)
	if err != nil {
		return 0, err
	}
	now, swept := clock.OfMachine(), make(map[string]bool)
	names := slices.DeleteFunc(b.names(), func(name string) bool { return !onDemand && !b.isDue(name, b.boundTo(name), now) })
	names = slices.AppendSeq(names, maps.Keys(b.publishedClaims()))
	for _, at := range partitions {
		lapsed, failed := entities.Expired(ctx, b.engine, at, names)
		err = errors.Join(err, failed)
		for _, l := range lapsed {
			s, key := b.boundTo(l.Lifecycle), l.Lifecycle
			if s == nil && !b.serves(l.Workspace, l.Lifecycle) {
				continue
			}
			if s == nil {
				if s, failed = b.find(store.InWorkspace(ctx, l.Workspace), l.Lifecycle); failed != nil {
					if fault.CodeOf(failed) != fault.NotFound { // NotFound: defined by a program that this node does not serve in this workspace
						err = errors.Join(err, failed)
					}
					continue
				}
				key = l.Workspace + "/" + l.Lifecycle // the config is the workspace's own; workspace names have no slash
				if !onDemand && !b.isDue(key, s, now) {
					continue
				}
			}
			swept[key] = true
			yes, failed := s.release(ctx, l)
			if yes {
				freed++
			}
			if !onDemand {
				failed = b.unlessRefused(failed, l)
			}
			err = errors.Join(err, failed) // a failure must not keep the others from being released
		}
	}
	b.mu.Lock()
	for key := range swept {
		b.swept[key] = now
	}
	b.mu.Unlock()
	return freed, err
}

// isDue reports whether a lifecycle's sweep interval has passed. A lifecycle without an interval is always
// due.
func (b *registry) isDue(key string, s *bound, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, ok := b.swept[key]
	return !ok || s.config.Janitor == nil || now.Sub(last) >= s.config.Janitor.Every
}

// release releases a claim whose lease expired.
func (s *bound) release(ctx context.Context, l entities.Lapsed) (bool, error) {
	ctx = store.InWorkspace(ctx, l.Workspace)
	s, step, err := s.planned(ctx, l.Plan, l.Step, l.Requester, l.Revert)
	if err != nil {
		return false, err
	}
	safety, unknown := lifecycleconfig.Undeclared, effects.Hold
	if step != nil {
		safety, unknown = s.safety(step, l.Requester), s.unknown(step, l.Requester)
	}
	note, _ := json.Marshal(map[string]any{"outcomeUnknown": safety == lifecycleconfig.Undeclared && l.Step != ""})
	r := recovery{Lapsed: l, claim: s.heldIn(l), resume: safety != lifecycleconfig.Opaque || unknown != effects.Hold, note: note}
	if j := s.janitorFor(s.registry.modules[s.config.OwningModule], l.Status); j != nil {
		r.also = func(ctx context.Context, tx *store.Tx) error {
			return catchPanic(func() error {
				return j.Recover(ctx, tx, []Stuck{{Lifecycle: l.Lifecycle, ID: l.ID, Claimed: l.Status, Revert: l.Revert, Operation: l.Operation,
					Step: l.Step, Requester: l.Requester, Holder: l.Holder, Since: l.ClaimedAt}})
			})
		}
	}
	if l.Begun > 0 { // the policy recorded when the body began counts, not the current declaration
		journal, err := effects.List(ctx, s.engine, l.Partition, l.Operation)
		if err != nil {
			return false, err
		}
		r.resume = r.resume && !slices.ContainsFunc(journal, func(x effects.Entry) bool {
			return x.Name == effects.Body && x.State == effects.Begun && x.Policy == effects.Hold
		})
	}
	e, freed, err := s.store.recover(ctx, r)
	if freed {
		meter.Of(s.engine).Expire(meter.Operation, slog.String("workspace", l.Workspace), slog.String("lifecycle", l.Lifecycle), slog.String("entity", l.ID), slog.String("step", l.Step),
			slog.String("operation", l.Operation), slog.String("holder", l.Holder), slog.Int64("epoch", l.Epoch), slog.String("phase", string(e.Claim.Phase)), slog.String("status", e.Status))
	}
	return freed, err
}

// adopt takes leases on entities in a claim status without a claim, and withdraws operations that no worker took in time.
func (b *registry) adopt(ctx context.Context) (adopted int, err error) {
	for _, name := range b.names() {
		n, failed := b.adoptDue(ctx, "adopt/"+name, b.boundTo(name))
		adopted, err = adopted+n, errors.Join(err, failed)
	}
	n, failed := b.adoptPublished(ctx)
	adopted, err = adopted+n, errors.Join(err, failed)
	shards, failed := store.Shards(ctx, b.engine)
	err = errors.Join(err, failed)
	for _, shard := range shards {
		err = errors.Join(err, b.nextStrays(ctx, shard))
	}
	withdrawn, failed := b.overdue(ctx, shards)
	return adopted + withdrawn, errors.Join(err, failed)
}

// adoptPublished adopts rows of published lifecycles in user tables.
func (b *registry) adoptPublished(ctx context.Context) (adopted int, err error) {
	for _, key := range b.publishedRows() {
		ctx := store.InWorkspace(ctx, key.workspace)
		s, failed := b.published.boundTo(ctx, key.name)
		if failed == nil {
			var n int
			n, failed = b.adoptDue(ctx, "adopt/"+key.workspace+"/"+key.name, s)
			adopted += n
		}
		err = errors.Join(err, failed)
	}
	return adopted, err
}

// adoptDue adopts a page of a user table's rows if the sweep interval of its lifecycle has passed.
func (b *registry) adoptDue(ctx context.Context, key string, s *bound) (adopted int, err error) {
	now := clock.OfMachine()
	if !b.isDue(key, s, now) {
		return 0, nil
	}
	b.mu.Lock()
	from := b.adoptCursor[key]
	b.mu.Unlock()
	adopted, next, err := s.store.adopt(ctx, "", from)
	b.mu.Lock()
	b.swept[key], b.adoptCursor[key] = now, next
	b.mu.Unlock()
	return adopted, err
}

// adoptAll adopts all entities of a workspace that are in a claim status without a claim. It is for tests that step the loops by hand.
func (b *registry) adoptAll(ctx context.Context, at store.Partition) (found bool, err error) {
	var all []*bound
	for _, name := range b.names() {
		all = append(all, b.boundTo(name))
	}
	for _, key := range b.publishedRows() {
		if key.workspace == at.Workspace {
			s, err := b.published.boundTo(ctx, key.name)
			if err != nil {
				return found, err
			}
			all = append(all, s)
		}
	}
	for _, s := range all {
		for more, from := true, 0; more; more = from > 0 {
			var n int
			if n, from, err = s.store.adopt(ctx, at.Workspace, from); err != nil {
				return found, err
			}
			found = found || n > 0
		}
	}
	for from, more := ([3]string{}), true; more; more = from != [3]string{} {
		var n int
		if n, from, err = b.strays(ctx, at, from); err != nil {
			return found, err
		}
		found = found || n > 0
	}
	return found, nil
}

// nextStrays scans the next page of a shard's entities; see strays.
func (b *registry) nextStrays(ctx context.Context, shard int16) error {
	b.mu.Lock()
	from := b.strayCursor[shard]
	b.mu.Unlock()
	_, next, err := b.strays(ctx, store.Partition{Shard: shard}, from)
	if err == nil && next == ([3]string{}) && from != next { // at the end: start over
		_, next, err = b.strays(ctx, store.Partition{Shard: shard}, next)
	}
	b.mu.Lock()
	b.strayCursor[shard] = next
	b.mu.Unlock()
	return err
}

// strays scans a page of the entities of a workspace, or of all on a shard, for those in a claim status without a claim, which
// happens if a row was edited. It takes a lease on them; they are reverted when the lease
// expires. next is where the following page begins, or empty at the end.
func (b *registry) strays(ctx context.Context, at store.Partition, from [3]string) (adopted int, next [3]string, err error) {
	claims := b.publishedClaims() // checked in the workspace of each entity below
	for _, name := range b.names() {
		s := b.boundTo(name)
		for _, c := range s.config.Claims() {
			if s.config.Table == nil {
				claims[name] = append(claims[name], c.Into)
			}
		}
	}
	if len(claims) == 0 {
		return 0, next, nil
	}
	found, next, err := entities.Strays(ctx, b.engine, at, claims, from)
	if err != nil {
		return 0, from, err
	}
	for _, f := range found {
		ctx := store.InWorkspace(ctx, f.Workspace)
		s, failed := b.owner(ctx, f.Lifecycle)
		if fault.CodeOf(failed) == fault.NotFound { // the lifecycle belongs to another workspace
			continue
		}
		if failed == nil && s.config.Table == nil { // a row of a user table is adopted by its own status
			var yes bool
			if yes, failed = s.adoptOne(ctx, b.engine, store.Partition{Shard: at.Shard, Workspace: f.Workspace}, f.ID, f.Status); yes {
				adopted++
			}
		}
		err = errors.Join(err, failed)
	}
	return adopted, next, err
}

// overdue withdraws operations of published lifecycles that no worker took in time.
func (b *registry) overdue(ctx context.Context, shards []int16) (ended int, err error) {
	names := slices.Sorted(maps.Keys(b.publishedClaims()))
	if len(names) == 0 {
		return 0, nil
	}
	for _, shard := range shards {
		found, failed := entities.Overdue(ctx, b.engine, shard, names)
		err = errors.Join(err, failed)
		for _, l := range found {
			if !b.serves(l.Workspace, l.Lifecycle) {
				continue
			}
			yes := false
			s, failed := b.find(store.InWorkspace(ctx, l.Workspace), l.Lifecycle)
			if failed == nil {
				yes, failed = s.withdrawOverdue(ctx, l)
			}
			if err = errors.Join(err, b.unlessRefused(failed, l)); yes {
				ended++
			}
		}
	}
	return ended, err
}

// unlessRefused returns err, unless a user's table refuses to release the row. That is logged, and is no failure of the janitor:
// the node is fine, and one row must not make it unready.
func (b *registry) unlessRefused(err error, l entities.Lapsed) error {
	refused, ok := errors.AsType[refusedRelease](err)
	if !ok {
		return err
	}
	b.engine.Log().Error("your table refuses to release a row", "workspace", l.Workspace, "lifecycle", l.Lifecycle, "entity", l.ID, "step", l.Step, "operation", l.Operation,
		"error", refused)
	return nil
}

// withdrawOverdue withdraws an operation that no worker took in time.
func (s *bound) withdrawOverdue(ctx context.Context, l entities.Lapsed) (bool, error) {
	limit := lease.Timeout
	if l.Plan != nil {
		limit = time.Duration(l.Plan.Timeout) * time.Millisecond
	}
	e, done, err := s.store.withdraw(store.InWorkspace(ctx, l.Workspace), l.Partition, entities.WithdrawArgs{Ticket: l.Ticket, Outcome: "timeout",
		Message: "no worker took the operation within " + limit.String(), Claim: s.heldIn(l)}, nil)
	if done {
		s.engine.Log().Warn("no worker took the operation in time", "workspace", l.Workspace, "lifecycle", l.Lifecycle, "entity", l.ID, "step", l.Step, "operation", l.Operation,
			"after", limit, "phase", e.Claim.Phase, "status", e.Status)
	}
	return done, err
}

// heldIn returns the status in which an operation is held, or "" if the status was changed under
// the claim.
func (s *bound) heldIn(l entities.Lapsed) string {
	if l.Plan != nil {
		return l.Plan.Into
	}
	if l.Status == l.Revert {
		return l.Status
	}
	for _, c := range s.config.Claims() {
		if c.Into == l.Status {
			return l.Status
		}
	}
	return ""
}

// Sweep runs the janitor's sweeps of lifecycles once, in the calling goroutine. It is for tests.
func Sweep(ctx context.Context, e *engine.Engine) error {
	b := registryOf(e)
	if b.published != nil {
		if err := b.published.poll(ctx); err != nil {
			return err
		}
	}
	_, err := b.expire(ctx, false)
	if err == nil {
		_, err = b.adopt(ctx)
	}
	return err
}
