package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/fault"
)

// Registry lists the reactions of a workspace at a revision. It is immutable.
//
// A command that writes events also writes the due notices by which reactions find them, so a node must know
// the reactions. A node caches the registry. Each command carries the cached revision and is refused if the
// workspace has a newer one; the node then reloads. No node misses a reaction, and no commit waits for a shared
// lock.
type Registry struct {
	Revision int64
	// Generation is that of the database ([Fence]).
	Generation int64
	Reactions  []Reaction
	// Statuses are, by lifecycle, the statuses that its entities may be moved to. The entities of a lifecycle that is
	// not listed may be moved to any status.
	Statuses map[string][]string
	// Claims are, by lifecycle, its claim statuses.
	Claims map[string][]string
}

// Move describes how a command moves an entity of a lifecycle. Into are the claim statuses that the command may put the
// entity into; To are the statuses that the entity may have afterwards, when the command is done or its claim has ended.
// Stray is the claim status of an entity that has no claim, if the command gives it one.
type Move struct {
	Lifecycle string
	Into, To  []string
	Stray     string
}

// Reaction is the part of a reaction that decides whether it wants an event.
type Reaction struct {
	Name    string
	Source  EventTable     // the table of the events that it follows
	Events  []string       // empty: every name
	Streams *regexp.Regexp // nil: every stream
}

// Wants reports whether a reaction follows a stream.
func (r *Reaction) Wants(source EventTable, stream string) bool {
	return r.Source == source && (r.Streams == nil || r.Streams.MatchString(stream))
}

// named reports whether a reaction wants one of the events.
func (r *Reaction) named(names []string) bool {
	return len(r.Events) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(r.Events, n) })
}

// Emission describes the events that a command is about to write: their names and their stream.
type Emission struct {
	Stream string
	Names  []string
}

// match returns the names of the reactions that want the events of a command.
func (g *Registry) match(source EventTable, e Emission) (names []string) {
	for i := range g.Reactions {
		if r := &g.Reactions[i]; r.Wants(source, e.Stream) && r.named(e.Names) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Registries caches the registries of workspaces. Safe for concurrent use.
type Registries struct {
	fence *Fence // nil: none
	mu    sync.RWMutex
	cache map[Partition]*Registry
}

// known returns the cached registry, or nil.
func (r *Registries) known(at Partition) *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cache[at]
}

// Resolve returns the registry of a workspace, cached or, if fresh is set, reloaded.
func (r *Registries) Resolve(ctx context.Context, d Doer, at Partition, fresh bool) (*Registry, error) {
	before := r.known(at)
	if before != nil && !fresh {
		return before, nil
	}
	g, err := r.load(ctx, d, at)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another goroutine may have read a newer revision and stored it first. A revision lower than the one cached
	// before this read is valid: a database that lost its last writes in a failover has a lower revision.
	if other := r.cache[at]; other != before && other.Revision > g.Revision {
		return other, nil
	}
	if r.cache == nil {
		r.cache = make(map[Partition]*Registry)
	}
	r.cache[at] = g
	return g, nil
}

// load reads the registry of a workspace, and refuses one of another generation of the database.
func (r *Registries) load(ctx context.Context, d Doer, at Partition) (*Registry, error) {
	g, err := registryVerb.DoAt(ctx, d, at, struct{}{})
	if err == nil && r.fence != nil {
		err = r.fence.Meet(g.Generation)
	}
	return &g, err
}

// registryVerb reads the revision, the reactions and the statuses of lifecycles in one statement, so that they are
// consistent. The row of a lifecycle has its statuses in the column events, and those of an announced config in
// streams.
var registryVerb = VerbOf[struct{}](Decl{Name: "registry.get", Lane: Read}, nil,
	func(g *Registry, row Row) error {
		var name, source, events, streams, claims string
		if err := row.Scan(&g.Revision, &g.Generation, &name, &source, &events, &streams, &claims); err != nil || name == "" {
			return err
		}
		if source == "lifecycle" {
			return g.addLifecycle(name, events, streams, claims)
		}
		r, err := ParseReaction(name, source, events, streams)
		g.Reactions = append(g.Reactions, r)
		return err
	})

// addLifecycle records the statuses of a lifecycle. While a config change is announced, wanted has the statuses
// after it, and only those that exist both before and after are recorded. Of claim statuses, those of both configs are
// recorded.
func (g *Registry) addLifecycle(name, statuses, wanted, claims string) error {
	var have, want, claimed []string
	if err := json.Unmarshal([]byte(statuses), &have); err != nil {
		return fmt.Errorf("cannot decode the statuses of lifecycle %s: %w", name, err)
	}
	if wanted != "" {
		if err := json.Unmarshal([]byte(wanted), &want); err != nil {
			return fmt.Errorf("cannot decode the pending statuses of lifecycle %s: %w", name, err)
		}
		have = slices.DeleteFunc(have, func(s string) bool { return !slices.Contains(want, s) })
	}
	if claims != "" {
		if err := json.Unmarshal([]byte(claims), &claimed); err != nil {
			return fmt.Errorf("cannot decode the claim statuses of lifecycle %s: %w", name, err)
		}
	}
	if g.Statuses == nil {
		g.Statuses, g.Claims = make(map[string][]string), make(map[string][]string)
	}
	g.Statuses[name], g.Claims[name] = have, claimed
	return nil
}

// allows refuses a status that the config does not have, or will not have after the announced change, a target status
// that has become a claim status, and a stray status that is no longer a claim status.
func (g *Registry) allows(m Move) error {
	have, governed := g.Statuses[m.Lifecycle]
	if !governed {
		return nil
	}
	for _, s := range slices.Concat(m.Into, m.To) {
		if s != "" && !slices.Contains(have, s) {
			return changed(m.Lifecycle, s, "the config of lifecycle %q does not allow status %q")
		}
	}
	claims := g.Claims[m.Lifecycle] // nil: the config was stored by a version that does not store claim statuses
	if m.Stray != "" && claims != nil && !slices.Contains(claims, m.Stray) {
		return changed(m.Lifecycle, m.Stray, "in lifecycle %q, status %q is no longer a claim status")
	}
	for _, s := range m.To {
		if slices.Contains(claims, s) {
			return changed(m.Lifecycle, s, "in lifecycle %q, only a claim may put an entity into status %q")
		}
	}
	return nil
}

func changed(lifecycle, status, why string) error {
	return fault.New(fault.Concurrency, why+", because the config was changed or is being changed: read the config and try again", lifecycle, status).With("lifecycle", lifecycle).With("status", status)
}

// ParseReaction parses the stored form of a reaction: events is a JSON list of event names, in which "*" matches every
// name; streams is a regular expression, or "" for every stream.
func ParseReaction(name, source, events, streams string) (r Reaction, err error) {
	r = Reaction{Name: name, Source: EventTable(source)}
	if err := json.Unmarshal([]byte(events), &r.Events); err != nil {
		return r, fmt.Errorf("cannot decode the events of reaction %s: %w", name, err)
	}
	if slices.Contains(r.Events, "*") {
		r.Events = nil
	}
	if streams != "" {
		r.Streams, err = regexp.Compile(streams)
	}
	return r, err
}

// RaiseVerb is the name of the verb that increments the revision.
const RaiseVerb = "registry.increment_revision"

var raiseVerb = VerbOf[struct{}](Decl{Name: RaiseVerb}, func(struct{}) []string { return []string{"registry"} }, ScanValue[int64]).
	Wakes(func(struct{}) []string { return []string{DeclaredTopic} })

// DeclaredTopic is the topic that is woken when a handler, lifecycle or reaction was declared, changed or removed.
const DeclaredTopic = "declared"

// Raise increments the registry revision of the context's workspace within the transaction, and returns it.
func Raise(ctx context.Context, tx *Tx) (revision int64, err error) {
	return raiseVerb.Do(ctx, tx, struct{}{})
}

var sumRevisionsVerb = VerbOf[struct{}](Decl{Name: "registry.sum_revisions", Lane: Read}, nil, ScanValue[int64])

// Declared returns the sum of the revisions of all workspaces, a number that changes whenever something is
// declared in any of them.
func Declared(ctx context.Context, d Doer) (int64, error) {
	return sumRevisionsVerb.DoAt(ctx, d, Partition{}, struct{}{})
}

// DueTopic returns the topic that wakes the workers of a reaction.
func DueTopic(reaction string) string { return "reaction/" + reaction }
