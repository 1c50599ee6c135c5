package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A config is registered in each workspace that it is for, so that no node moves an
// entity to a status that the config in force has not.
//
// A change must strand nobody, also not against a step that is under way elsewhere, on a
// node that knows the old config. Two kinds of change can: one that takes statuses away, and
// one that makes claim statuses of others, or the other way round: who stands there free
// would be put back by the janitor, or stand where no step leads on. An operation goes on by
// its plan whatever the config says, but must find the statuses that its plan leads to.
//
// So such a change is announced first: from then on, commands obey both configs, for they go
// by the registry's revision and are refused where that has changed. None leaves an entity in
// a status that goes or becomes a claim's, and no operation is taken whose plan leads there.
// Then the transactions that were under way are waited for, which may have gone by the old
// one. Only then are the entities and operations counted: from here on they can only become
// fewer. If there are any, the change is taken back, and refused. The end of an operation is
// not held up by an announcement: it is counted before and after, by its plan and its status.

// ready registers the lifecycle in the context's workspace when it is first used
// there. Where another config is in force it stays: a node that comes late does not
// take back what one that was started after it has brought.
func (s *bound) ready(ctx context.Context) error {
	space := store.WorkspaceOf(ctx)
	if _, known := s.known.Load(space); known {
		return nil
	}
	if o, ok := s.store.(*userTable); ok && o.space != "" && o.space != space {
		return nil // there is nothing of it there
	}
	if len(s.workspaces) > 0 && !slices.Contains(s.workspaces, space) {
		return fault.New(fault.Validation, "the lifecycle %q is not for the workspace %q: name it in In", s.config.Workflow, space)
	}
	return s.enlist(ctx, false)
}

// enlist registers the lifecycle in the context's workspace; replace says that its
// config replaces another.
func (s *bound) enlist(ctx context.Context, replace bool) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, known := s.known.Load(store.WorkspaceOf(ctx)); known && !replace {
		return nil
	}
	if err := s.register(ctx, replace); err != nil {
		return err
	}
	if err := s.registerAfterEffects(ctx); err != nil {
		return err
	}
	s.known.Store(store.WorkspaceOf(ctx), true)
	return nil
}

// enlistAll brings the config into force in every workspace that it is for, and
// where another is in force. There may be many workspaces, and in most of them
// nothing changes when a node starts: these wait for their first use.
func (s *bound) enlistAll(ctx context.Context) error {
	spaces := s.spaces()
	shards, err := store.Shards(ctx, s.engine)
	for _, shard := range shards {
		behind, failed := behindVerb.DoAt(ctx, s.engine, store.Partition{Shard: shard}, behindArgs{s.config.Workflow, s.text})
		err = errors.Join(err, failed)
		if len(s.workspaces) == 0 {
			spaces = append(spaces, behind...)
		}
	}
	if err != nil {
		return err
	}
	slices.Sort(spaces)
	for _, space := range slices.Compact(spaces) {
		if err := s.enlist(store.InWorkspace(ctx, space), true); err != nil {
			return err
		}
	}
	return nil
}

// registerAfterEffects registers the after-effects in the context's workspace.
func (s *bound) registerAfterEffects(ctx context.Context) error {
	for _, d := range s.afters {
		if _, err := reactions.Register(ctx, s.engine, d); err != nil {
			return err
		}
	}
	return nil
}

// underway is how long transactions are waited for that may go by the old config.
const underway = 30 * time.Second

// register brings the config into force in a workspace, if there is none, or if it
// is to replace another.
func (s *bound) register(ctx context.Context, replace bool) error {
	at, err := s.engine.Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	mine := text(s.config.StatusTypes)
	for range maxAttempts {
		now, err := readConfigVerb.DoAt(ctx, s.engine, at, s.config.Workflow)
		if err != nil {
			return err
		}
		if now.revision > 0 && now.origin != s.origin() {
			return fault.New(fault.Conflict, "there is a lifecycle %q already, which %s", s.config.Workflow, brought[now.origin])
		}
		if now.config == s.text && now.wanted == "" {
			return nil
		}
		if now.revision > 0 && !replace {
			return s.takeBackStale(ctx, at, now)
		}
		now.origin = s.origin()
		err = s.change(ctx, at, now, inForce{statuses: mine, config: s.text, origin: s.origin(), claims: text(s.config.ClaimStatuses())})
		if fault.CodeOf(err) != fault.Concurrency {
			return err
		}
	}
	return fault.New(fault.Concurrency, "the config of %q was changed by others each time", s.config.Workflow)
}

// change replaces a config. Where it could strand somebody, it is announced first. What
// another node has announced already is not announced again, which would only make the
// other begin anew: nodes that bring the same config at once finish it together.
func (s *bound) change(ctx context.Context, at store.Partition, now, next inForce) error {
	was := now.claimsInForce()
	if now.first() { // there is nothing that it would be another than
		was = s.config.ClaimStatuses()
	}
	flipped := differing(was, s.config.ClaimStatuses())
	if now.revision > 0 && now.wanted == "" && !takesAway(now.statuses, next.statuses) && !slices.ContainsFunc(flipped, has(now.statuses)) {
		_, err := s.put(ctx, at, now.revision, next)
		return err
	}
	revision := now.revision
	both := text(append(slices.Clone(was), differing(s.config.ClaimStatuses(), was)...))
	if now.wanted != next.statuses || now.claims != both {
		announced := now
		announced.wanted, announced.claims = next.statuses, both
		if now.first() {
			announced.statuses, announced.config = next.statuses, next.config
		}
		var err error
		if revision, err = s.put(ctx, at, now.revision, announced); err != nil {
			return err
		}
	}
	err := s.settleDown(ctx, at)
	if err == nil {
		err = s.strands(ctx, at, now.statuses, next, flipped)
	}
	if err == nil {
		_, err = s.put(ctx, at, revision, next)
	}
	if err == nil || fault.CodeOf(err) == fault.Concurrency { // another goes on from here
		return err
	}
	return errors.Join(err, s.takeBack(ctx, at, revision, now))
}

// put writes a config, and raises the registry's revision with it.
func (s *bound) put(ctx context.Context, at store.Partition, expected int64, c inForce) (revision int64, err error) {
	err = s.raised(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if revision, err = putConfigVerb.DoAt(ctx, tx, at, putArgs{s.config.Workflow, expected, c}); err == nil && revision == 0 {
			err = fault.New(fault.Concurrency, "the config of %q was changed by another", s.config.Workflow)
		}
		return err
	})
	return revision, err
}

// takeBack undoes what was announced.
func (s *bound) takeBack(ctx context.Context, at store.Partition, revision int64, was inForce) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	if !was.first() {
		was.wanted, was.claims = "", text(was.claimsInForce())
		_, err := s.put(ctx, at, revision, was)
		return err
	}
	return s.raised(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := dropConfigVerb.DoAt(ctx, tx, at, putArgs{name: s.config.Workflow, expected: revision})
		return err
	})
}

// raised writes something and raises the registry's revision.
func (s *bound) raised(ctx context.Context, f func(context.Context, *store.Tx) error) error {
	return s.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := store.Raise(ctx, tx); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// heal takes back a change whose node died in the middle of it, if there is one.
func (s *bound) heal(ctx context.Context) {
	at, err := s.engine.Partition(ctx, store.Write)
	if err != nil {
		return
	}
	now, err := readConfigVerb.DoAt(ctx, s.engine, at, s.config.Workflow)
	if err == nil {
		err = s.takeBackStale(ctx, at, now)
	}
	if err != nil {
		s.engine.Log().Warn("a change of a lifecycle's config that nobody finished could not be taken back", "lifecycle", s.config.Workflow, "error", err)
	}
}

// takeBackStale undoes what was announced long ago. One of several who do so at
// once is enough.
func (s *bound) takeBackStale(ctx context.Context, at store.Partition, now inForce) error {
	if !now.stale {
		return nil
	}
	now.wanted, now.claims = "", text(now.claimsInForce())
	_, err := s.put(ctx, at, now.revision, now)
	if fault.CodeOf(err) == fault.Concurrency {
		return nil
	}
	return err
}

// settleDown waits until the transactions have ended that are under way.
func (s *bound) settleDown(ctx context.Context, at store.Partition) error {
	all, err := underwayVerb.DoAt(ctx, s.engine, at, "")
	wait, cancel := context.WithTimeout(ctx, underway)
	defer cancel()
	for err == nil && len(all) > 0 {
		if clock.Wait(wait, 20*time.Millisecond) != nil {
			return fault.New(fault.Unavailable, "transactions have been under way for %s that may go by the old config of %q: try again later", underway, s.config.Workflow).
				Repeatable()
		}
		all, err = underwayVerb.DoAt(ctx, s.engine, at, text(all))
	}
	return err
}

// strands refuses a config that has no place for some entities; flipped are the statuses that
// become claim statuses, or cease to be.
func (s *bound) strands(ctx context.Context, at store.Partition, was string, next inForce, flipped []string) error {
	all, err := strandVerb.DoAt(ctx, s.engine, at, strandArgs{s.config.Workflow, next.statuses, next.claims, text(flipped)})
	if o, ok := s.store.(*userTable); ok && err == nil {
		var rows []stranded
		rows, err = o.strands(ctx, was, next.statuses, flipped)
		all = append(all, rows...)
	}
	if err != nil || len(all) == 0 {
		return err
	}
	var total int64
	var parts []string
	advice := map[string]bool{}
	for _, x := range all {
		total += x.count
		switch {
		case x.open:
			parts = append(parts, fmt.Sprintf("%d with an operation that is in %[2]q or leads there", x.count, x.status))
			advice["let operations end first, or withdraw or resolve them"] = true
		case slices.Contains(flipped, x.status) && has(next.claims)(x.status):
			parts = append(parts, fmt.Sprintf("%d in %q, which becomes a claim status", x.count, x.status))
			advice["move them on first, or take another status for the claim"] = true
		case slices.Contains(flipped, x.status):
			parts = append(parts, fmt.Sprintf("%d in %q, which is no claim status any more", x.count, x.status))
			advice["run a node, which puts them back, and try again"] = true
		default:
			parts = append(parts, fmt.Sprintf("%d in %q", x.count, x.status))
			advice["move them on first, or keep the status"] = true
		}
	}
	f := fault.New(fault.Validation, "the config of %q would strand %d entities: %s; %s", s.config.Workflow, total,
		strings.Join(parts, ", "), strings.Join(slices.Sorted(maps.Keys(advice)), "; ")).With("count", total).With("workflow", s.config.Workflow)
	f.Violations = []fault.Violation{{Rule: "strand", Path: "/status_types", Message: f.Message}}
	return f
}

// strandLimit is how many rows of the user's are counted at the most.
const strandLimit = 100_000

// strands counts the rows of the user's that are in a status which goes, and those that stand free in one
// that becomes a claim status or ceases to be one. The user may write what they like: nothing keeps them
// from a status that is gone.
func (o *userTable) strands(ctx context.Context, was, next string, flipped []string) ([]stranded, error) {
	var old []string
	if json.Unmarshal([]byte(was), &old) != nil {
		return nil, nil // there was none before
	}
	kept := has(next)
	gone := slices.DeleteFunc(old, kept)
	statuses := append(slices.Clone(gone), slices.DeleteFunc(slices.Clone(flipped), func(s string) bool { return !kept(s) })...)
	if len(statuses) == 0 {
		return nil, nil
	}
	rows, err := o.table.In(ctx, statuses, strandLimit)
	counts := make(map[string]int64)
	for _, row := range rows {
		if o.space == "" && row.Workspace != store.WorkspaceOf(ctx) {
			continue
		}
		if !slices.Contains(gone, row.Status) { // who has an operation is counted by that
			side, failed := entities.Get(ctx, o.bound.engine, o.bound.config.Workflow, row.ID)
			if failed == nil && side.Claim.Phase != entities.Free {
				continue
			}
			if failed != nil && fault.CodeOf(failed) != fault.NotFound {
				return nil, failed
			}
		}
		counts[row.Status]++
	}
	var all []stranded
	for _, status := range statuses {
		if n := counts[status]; n > 0 {
			all = append(all, stranded{status: status, count: n})
		}
	}
	return all, err
}
