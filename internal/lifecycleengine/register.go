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
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A config is registered in each workspace that it is for, so that no node moves an
// entity to a status that the config in force does not have.
//
// A change of a config must strand no entity, not even through a step that is in flight on
// another node with the old config. Two kinds of change can strand entities: a change that
// removes statuses, and a change that turns claim statuses into others or vice versa. An
// unclaimed entity in such a status would be reverted by the janitor, or would be where no
// step leads on. An operation follows its plan whatever the config says, but the statuses
// that its plan leads to must exist.
//
// Therefore such a change is announced first. From then on commands obey both configs,
// because they check the revision of the workspace's registry and are refused if it has changed. No command
// leaves an entity in a status that is removed or becomes a claim status, and no operation
// is claimed whose plan leads there. Next, the change waits for the transactions in flight,
// which may follow the old config. Only then are the entities and operations counted: from
// here on their number can only fall. If there are any, the change is reverted and refused.
// An announcement does not delay the end of an operation: the operation is counted before
// and after its end, by its plan and its status.

// ready registers the lifecycle in the context's workspace on its first use there. A
// config that is already in force stays, so that a node that registers late does not
// revert the config of a node that was started after it.
func (s *bound) ready(ctx context.Context) error {
	space := store.WorkspaceOf(ctx)
	if _, known := s.known.Load(space); known {
		return nil
	}
	if o, ok := s.store.(*userTable); ok && o.space != "" && o.space != space {
		return nil // the table has no rows in this workspace
	}
	if len(s.workspaces) > 0 && !slices.Contains(s.workspaces, space) {
		return fault.New(fault.Validation, "lifecycle %q is not available in workspace %q: add the workspace with Lifecycle.InWorkspaces", s.config.Workflow, space)
	}
	return s.registerOnce(ctx, false)
}

// registerOnce registers the lifecycle, one caller at a time, in the context's workspace. With replace, its config
// replaces the one in force.
func (s *bound) registerOnce(ctx context.Context, replace bool) error {
	select {
	case s.registering <- struct{}{}:
		defer func() { <-s.registering }()
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

// registerAll brings the config into force in the workspaces of initialSpaces and, if it is for every
// workspace, in those that have another config. There may be many others, in which nothing changes
// when a node starts: there, it is registered on first use.
func (s *bound) registerAll(ctx context.Context) error {
	spaces := s.initialSpaces()
	shards, err := store.Shards(ctx, s.engine)
	for _, shard := range shards {
		outdated, failed := listOutdatedVerb.DoAt(ctx, s.engine, store.Partition{Shard: shard}, listOutdatedArgs{s.config.Workflow, s.text})
		err = errors.Join(err, failed)
		if len(s.workspaces) == 0 {
			spaces = append(spaces, outdated...)
		}
	}
	if err != nil {
		return err
	}
	slices.Sort(spaces)
	for _, space := range slices.Compact(spaces) {
		if err := s.registerOnce(store.InWorkspace(ctx, space), true); err != nil {
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

// transactionWait limits the wait for transactions that may follow the old config.
const transactionWait = 30 * time.Second

// register brings the config into force in a workspace that has none. With replace, it
// also replaces another config.
func (s *bound) register(ctx context.Context, replace bool) error {
	at, err := s.engine.Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	mine := jsonOf(s.config.StatusTypes)
	for range maxAttempts {
		now, err := getConfigVerb.DoAt(ctx, s.engine, at, s.config.Workflow)
		if err != nil {
			return err
		}
		if now.revision > 0 && now.origin != s.origin() {
			return fault.New(fault.Conflict, "lifecycle %q already exists and %s: choose another name", s.config.Workflow, originText[now.origin])
		}
		if now.config == s.text && now.wanted == "" {
			return nil
		}
		if err := s.checkSameTable(now); err != nil {
			return err
		}
		if now.revision > 0 && !replace { // the config in force stays
			return s.revertStaleChange(ctx, at, now)
		}
		now.origin = s.origin()
		err = s.change(ctx, at, now, inForce{statuses: mine, config: s.text, origin: s.origin(), claims: jsonOf(s.config.ClaimStatuses())})
		if fault.CodeOf(err) != fault.Concurrency {
			return err
		}
	}
	return fault.New(fault.Concurrency, "the config of lifecycle %q was changed concurrently during every attempt: try again", s.config.Workflow)
}

// checkSameTable refuses to move the entities of a published lifecycle to another table.
func (s *bound) checkSameTable(now inForce) error {
	was, _ := lifecycleconfig.Parse([]byte(now.config))
	if s.bound == nil || now.revision == 0 || now.first() || was == nil || was.TableName() == s.config.TableName() {
		return nil
	}
	return tableFault(s.config.Workflow, "the entity_table of a lifecycle cannot be changed, because its entities would stay behind: publish the config under another name")
}

// checkTableUnshared refuses a table that another published lifecycle of the workspace uses: two lifecycles would not
// exclude each other. A name that this node does not declare may be an earlier name of the same table. The transaction has locked the row of the workspace's registry, so no other config is published
// meanwhile.
func (s *bound) checkTableUnshared(ctx context.Context, tx *store.Tx) error {
	if s.bound == nil || s.config.Table == nil {
		return nil
	}
	all, err := listPublished(ctx, tx)
	unmoved := slices.ContainsFunc(all, func(x publishedConfig) bool { // an update in the same table shares nothing anew
		c, _ := lifecycleconfig.Parse([]byte(x.config))
		return x.name == s.config.Workflow && c != nil && c.Table != nil && c.TableName() == s.config.TableName()
	})
	for _, x := range all {
		c, _ := lifecycleconfig.Parse([]byte(x.config))
		if x.name == s.config.Workflow || c == nil || c.Table == nil {
			continue
		}
		if c.TableName() == s.config.TableName() {
			return tableFault(s.config.Workflow, fmt.Sprintf("table %q already has the entities of lifecycle %q: use another table", s.config.TableName(), x.name))
		}
		if _, declared := s.registry.published.tables[c.TableName()]; !declared && !unmoved {
			return tableFault(s.config.Workflow, fmt.Sprintf("lifecycle %q has its entities in table %q, which the configuration of this server does not declare: declare it again, because it may be another name of table %q",
				x.name, c.TableName(), s.config.TableName()))
		}
	}
	return err
}

func tableFault(workflow, message string) error {
	f := fault.New(fault.Validation, "invalid lifecycle config: table /entity_table: %s", message).With("workflow", workflow)
	f.Violations = []fault.Violation{{Rule: "table", Path: "/entity_table", Message: message}}
	return f
}

// change replaces a config. If the change could strand entities, it is announced first. An
// announcement by another node is reused, because a second one would only make the other
// node start over: nodes that register the same config concurrently finish the change together.
func (s *bound) change(ctx context.Context, at store.Partition, now, next inForce) error {
	was := now.claimsInForce()
	if now.first() { // no earlier config to differ from
		was = s.config.ClaimStatuses()
	}
	flipped := differing(was, s.config.ClaimStatuses()) // they become claim statuses or cease to be
	if now.revision > 0 && now.wanted == "" && !takesAway(now.statuses, next.statuses) && !slices.ContainsFunc(flipped, has(now.statuses)) {
		_, err := s.put(ctx, at, now.revision, next, &now)
		return err
	}
	revision := now.revision
	both := jsonOf(append(slices.Clone(was), differing(s.config.ClaimStatuses(), was)...))
	if now.wanted != next.statuses || now.claims != both {
		announced := now
		announced.wanted, announced.claims = next.statuses, both
		if now.first() {
			announced.statuses, announced.config = next.statuses, next.config
		}
		var err error
		if revision, err = s.put(ctx, at, now.revision, announced, nil); err != nil {
			return err
		}
	}
	err := s.waitForTransactions(ctx, at)
	if err == nil {
		err = s.strands(ctx, at, now.statuses, next, flipped)
	}
	if err == nil {
		_, err = s.put(ctx, at, revision, next, &now)
	}
	if err == nil || fault.CodeOf(err) == fault.Concurrency { // another node continues from here
		return err
	}
	return errors.Join(err, s.revertChange(ctx, at, revision, now))
}

// put writes a config and raises the revision of the workspace's registry in the same transaction. If it brings a config
// into force, was is the one before, for the audit; otherwise was is nil.
func (s *bound) put(ctx context.Context, at store.Partition, expected int64, c inForce, was *inForce) (revision int64, err error) {
	err = s.withNewRevision(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if err := s.checkTableUnshared(ctx, tx); err != nil {
			return err
		}
		if revision, err = putConfigVerb.DoAt(ctx, tx, at, putArgs{s.config.Workflow, expected, c}); err == nil && revision == 0 {
			err = fault.New(fault.Concurrency, "the config of lifecycle %q was changed concurrently: try again", s.config.Workflow)
		}
		if err != nil || was == nil {
			return err
		}
		a := audit.Action{Name: "lifecycle.put", Subject: "lifecycle/" + s.config.Workflow, After: document(c.config)}
		if !was.first() {
			a.Before = document(was.config)
		}
		return audit.RecordRequested(ctx, tx, a)
	})
	return revision, err
}

// document returns a config for the audit: one in YAML is a text.
func document(config string) any {
	if json.Valid([]byte(config)) {
		return json.RawMessage(config)
	}
	return config
}

// revertChange reverts an announced change.
func (s *bound) revertChange(ctx context.Context, at store.Partition, revision int64, was inForce) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	if !was.first() {
		was.wanted, was.claims = "", jsonOf(was.claimsInForce())
		_, err := s.put(ctx, at, revision, was, nil)
		return err
	}
	return s.withNewRevision(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := deleteConfigVerb.DoAt(ctx, tx, at, putArgs{name: s.config.Workflow, expected: revision})
		return err
	})
}

// withNewRevision runs f in a transaction that raises the revision of the workspace's registry.
func (s *bound) withNewRevision(ctx context.Context, f func(context.Context, *store.Tx) error) error {
	return s.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := store.Raise(ctx, tx); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// revertAbandoned reverts an announced change whose node crashed before it finished, if there is one.
func (s *bound) revertAbandoned(ctx context.Context) {
	at, err := s.engine.Partition(ctx, store.Write)
	if err != nil {
		return
	}
	now, err := getConfigVerb.DoAt(ctx, s.engine, at, s.config.Workflow)
	if err == nil {
		err = s.revertStaleChange(ctx, at, now)
	}
	if err != nil {
		s.engine.Log().Warn("failed to revert an unfinished change to a lifecycle config", "lifecycle", s.config.Workflow, "error", err)
	}
}

// revertStaleChange reverts a change that was announced long ago. If several nodes do so
// concurrently, one of them succeeds and the others have nothing to do.
func (s *bound) revertStaleChange(ctx context.Context, at store.Partition, now inForce) error {
	if !now.stale {
		return nil
	}
	now.wanted, now.claims = "", jsonOf(now.claimsInForce())
	_, err := s.put(ctx, at, now.revision, now, nil)
	if fault.CodeOf(err) == fault.Concurrency {
		return nil
	}
	return err
}

// waitForTransactions waits until the transactions in flight have ended.
func (s *bound) waitForTransactions(ctx context.Context, at store.Partition) error {
	all, err := listOpenTransactionsVerb.DoAt(ctx, s.engine, at, "")
	wait, cancel := context.WithTimeout(ctx, transactionWait)
	defer cancel()
	for err == nil && len(all) > 0 {
		if clock.Wait(wait, 20*time.Millisecond) != nil {
			return fault.New(fault.Unavailable, "transactions that began more than %s ago may still use the old config of lifecycle %q: try again later", transactionWait, s.config.Workflow).
				AsRetryable()
		}
		all, err = listOpenTransactionsVerb.DoAt(ctx, s.engine, at, jsonOf(all))
	}
	return err
}

// strands refuses a config that would strand entities. flipped are the statuses that become
// claim statuses or cease to be claim statuses.
func (s *bound) strands(ctx context.Context, at store.Partition, was string, next inForce, flipped []string) error {
	all, err := countStrandedVerb.DoAt(ctx, s.engine, at, countStrandedArgs{s.config.Workflow, next.statuses, next.claims, jsonOf(flipped)})
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
			advice["wait for these operations to end, or withdraw or resolve them"] = true
		case slices.Contains(flipped, x.status) && has(next.claims)(x.status):
			parts = append(parts, fmt.Sprintf("%d in %q, which becomes a claim status", x.count, x.status))
			advice["move these entities first, or use another status for the claim"] = true
		case slices.Contains(flipped, x.status):
			parts = append(parts, fmt.Sprintf("%d in %q, which is no longer a claim status", x.count, x.status))
			advice["run a node, which reverts these entities, and try again"] = true
		default:
			parts = append(parts, fmt.Sprintf("%d in %q", x.count, x.status))
			advice["move these entities first, or keep the status"] = true
		}
	}
	f := fault.New(fault.Validation, "the config of lifecycle %q does not fit %d of the existing entities (%s): %s", s.config.Workflow, total,
		strings.Join(parts, ", "), strings.Join(slices.Sorted(maps.Keys(advice)), "; ")).With("count", total).With("workflow", s.config.Workflow)
	f.Violations = []fault.Violation{{Rule: "strand", Path: "/status_types", Message: f.Message}}
	return f
}

// strandLimit limits how many rows of a user table are counted.
const strandLimit = 100_000

// strands counts the rows of a user table in a status that is removed, and the unclaimed rows in a status that
// becomes a claim status or ceases to be one. It is best effort: users may still write a removed status.
func (o *userTable) strands(ctx context.Context, was, next string, flipped []string) ([]stranded, error) {
	var old []string
	if json.Unmarshal([]byte(was), &old) != nil {
		return nil, nil // no earlier config
	}
	remains := has(next)
	gone := slices.DeleteFunc(old, remains)
	statuses := append(slices.Clone(gone), slices.DeleteFunc(slices.Clone(flipped), func(s string) bool { return !remains(s) })...)
	if len(statuses) == 0 {
		return nil, nil
	}
	rows, err := o.table.In(ctx, store.WorkspaceOf(ctx), statuses, strandLimit)
	counts := make(map[string]int64)
	for _, row := range rows {
		if !slices.Contains(gone, row.Status) { // a claimed entity is counted by its operation
			companion, failed := entities.Get(ctx, o.bound.engine, o.bound.config.Workflow, row.ID)
			if failed == nil && companion.Claim.Phase != entities.Free {
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
