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

// Registry is which reactions a workspace has, as known at a revision. It is a
// value that is never changed.
//
// Whoever writes events also writes the marks by which reactions find them, and
// so must know the reactions. A node keeps what it has read; each command says
// which revision that is, and is refused where the workspace has another by now:
// then the node reads again. So no node misses a reaction, and no commit waits
// for a lock that all share.
type Registry struct {
	Revision  int64
	Reactions []Reaction
	// Statuses are those that the entities of a lifecycle may be moved to. A
	// lifecycle that has no config here may move them to any.
	Statuses map[string][]string
	// Claims are those of them that only a claim leads into.
	Claims map[string][]string
}

// Move is where a command moves an entity of a lifecycle: Into is what it claims, To where
// it leaves the entity free, at once or when the claim ends. Stray is the claim status that the
// entity is in by mistake.
type Move struct {
	Lifecycle string
	Into, To  []string
	Stray     string
}

// Reaction is what is needed to know whether a reaction wants an event.
type Reaction struct {
	Name    string
	Source  EventTable
	Events  []string // none: every name
	Streams *regexp.Regexp
}

// Wants says whether a reaction follows a stream.
func (r *Reaction) Wants(source EventTable, stream string) bool {
	return r.Source == source && (r.Streams == nil || r.Streams.MatchString(stream))
}

// named says whether a reaction wants one of the events.
func (r *Reaction) named(names []string) bool {
	return len(r.Events) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(r.Events, n) })
}

// Emission is what a command is about to write: events with these names, on this
// stream.
type Emission struct {
	Stream string
	Names  []string
}

// match returns the names of the reactions that want what a command writes.
func (g *Registry) match(source EventTable, e Emission) (names []string) {
	for i := range g.Reactions {
		if r := &g.Reactions[i]; r.Wants(source, e.Stream) && r.named(e.Names) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Registries remembers the registries of workspaces. Safe for concurrent use.
type Registries struct {
	mu    sync.RWMutex
	cache map[Partition]*Registry
}

// known returns what is remembered, if anything is.
func (r *Registries) known(at Partition) *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cache[at]
}

// Resolve returns a workspace's registry: the one remembered, or a fresh one.
func (r *Registries) Resolve(ctx context.Context, d Doer, at Partition, fresh bool) (*Registry, error) {
	before := r.known(at)
	if before != nil && !fresh {
		return before, nil
	}
	g, err := loadRegistry(ctx, d, at)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another may have read later and been here first. What was there before is no
	// measure: a database that lost its last writes in a failover has a lower revision.
	if other := r.cache[at]; other != before && other.Revision > g.Revision {
		return other, nil
	}
	if r.cache == nil {
		r.cache = make(map[Partition]*Registry)
	}
	r.cache[at] = g
	return g, nil
}

func loadRegistry(ctx context.Context, d Doer, at Partition) (*Registry, error) {
	g, err := registryVerb.DoAt(ctx, d, at, struct{}{})
	return &g, err
}

// registryVerb reads the revision and the reactions in one statement, so that
// they belong together.
var registryVerb = VerbOf[struct{}](Decl{Name: "registry.read", Lane: Read}, nil,
	func(g *Registry, row Row) error {
		var name, source, events, streams, claims string
		if err := row.Scan(&g.Revision, &name, &source, &events, &streams, &claims); err != nil || name == "" {
			return err
		}
		if source == "lifecycle" {
			return g.govern(name, events, streams, claims)
		}
		r, err := ParseReaction(name, source, events, streams)
		g.Reactions = append(g.Reactions, r)
		return err
	})

// govern notes which statuses a lifecycle has: while a change is looked into, those
// that it has before and after. Those that are claims before or after are stored together.
func (g *Registry) govern(name, statuses, wanted, claims string) error {
	var have, want, claimed []string
	if err := json.Unmarshal([]byte(statuses), &have); err != nil {
		return fmt.Errorf("the statuses of the lifecycle %s: %w", name, err)
	}
	if wanted != "" {
		if err := json.Unmarshal([]byte(wanted), &want); err != nil {
			return fmt.Errorf("the statuses to come of the lifecycle %s: %w", name, err)
		}
		have = slices.DeleteFunc(have, func(s string) bool { return !slices.Contains(want, s) })
	}
	if claims != "" {
		if err := json.Unmarshal([]byte(claims), &claimed); err != nil {
			return fmt.Errorf("the claim statuses of the lifecycle %s: %w", name, err)
		}
	}
	if g.Statuses == nil {
		g.Statuses, g.Claims = make(map[string][]string), make(map[string][]string)
	}
	g.Statuses[name], g.Claims[name] = have, claimed
	return nil
}

// allows refuses a status that a lifecycle has not, or not any more, and one to leave an
// entity in that is a claim status by now.
func (g *Registry) allows(m Move) error {
	have, governed := g.Statuses[m.Lifecycle]
	if !governed {
		return nil
	}
	for _, s := range slices.Concat(m.Into, m.To) {
		if s != "" && !slices.Contains(have, s) {
			return changed(m.Lifecycle, s, "the lifecycle %q has no status %q (any more)")
		}
	}
	claims := g.Claims[m.Lifecycle] // nil: a program stored the config that stores none
	if m.Stray != "" && claims != nil && !slices.Contains(claims, m.Stray) {
		return changed(m.Lifecycle, m.Stray, "in the lifecycle %q, %q is no claim status now")
	}
	for _, s := range m.To {
		if slices.Contains(claims, s) {
			return changed(m.Lifecycle, s, "in the lifecycle %q, %q is a claim status now, which only a claim leads into")
		}
	}
	return nil
}

func changed(lifecycle, status, why string) error {
	return fault.New(fault.Concurrency, why+": its config was changed, or is being changed", lifecycle, status).With("lifecycle", lifecycle).With("status", status)
}

// ParseReaction makes a reaction of its stored form: a JSON list of names, of
// which "*" is any, and a pattern, of which "" is any.
func ParseReaction(name, source, events, streams string) (r Reaction, err error) {
	r = Reaction{Name: name, Source: EventTable(source)}
	if err := json.Unmarshal([]byte(events), &r.Events); err != nil {
		return r, fmt.Errorf("the events of the reaction %s: %w", name, err)
	}
	if slices.Contains(r.Events, "*") {
		r.Events = nil
	}
	if streams != "" {
		r.Streams, err = regexp.Compile(streams)
	}
	return r, err
}

// RaiseVerb is the name of the verb that raises the revision.
const RaiseVerb = "registry.raise"

var raiseVerb = VerbOf[struct{}](Decl{Name: RaiseVerb}, func(struct{}) []string { return []string{"registry"} }, ScanValue[int64])

// Raise raises the revision of the registry of the context's workspace, with what
// else its transaction writes, and returns it.
func Raise(ctx context.Context, tx *Tx) (revision int64, err error) {
	return raiseVerb.Do(ctx, tx, struct{}{})
}

var totalVerb = VerbOf[struct{}](Decl{Name: "registry.total", Lane: Read}, nil, ScanValue[int64])

// Declared is a number that is another when something was declared, in whatever
// workspace: the sum of all revisions.
func Declared(ctx context.Context, d Doer) (int64, error) {
	return totalVerb.DoAt(ctx, d, Partition{}, struct{}{})
}

// DueTopic is what the workers of a reaction are woken by.
func DueTopic(reaction string) string { return "reaction/" + reaction }
