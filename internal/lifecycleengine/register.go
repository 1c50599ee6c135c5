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
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
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

type inForce struct {
	revision                 int64
	statuses, config, wanted string
	stale                    bool // wanted has been so for long: its node has died
	origin                   string
	claims                   string // the claim statuses; while a change is announced, those of both
}

type putArgs struct {
	name     string
	expected int64
	inForce
}

type strandArgs struct{ lifecycle, statuses, claims, flipped string }

type behindArgs struct{ lifecycle, config string }

type stranded struct {
	status string
	open   bool // operations that are under way there, or lead there
	count  int64
}

var (
	readConfigVerb = store.NewVerb(store.Decl{Name: "lifecycles.read", Lane: store.Read}, nil,
		func(name string, args *store.Args) { args.Text("lifecycle", name) },
		func(c *inForce, row store.Row) error {
			return row.Scan(&c.revision, &c.statuses, &c.config, &c.wanted, &c.stale, &c.origin, &c.claims)
		})
	putConfigVerb = store.NewVerb(store.Decl{Name: "lifecycles.put"},
		func(a putArgs) []string { return []string{"lifecycle/" + a.name} },
		func(a putArgs, args *store.Args) {
			args.Text("name", a.name)
			args.Int("expected", a.expected)
			args.Text("statuses", a.statuses)
			args.Text("config", a.config)
			args.MaybeText("wanted", a.wanted)
			args.Text("origin", a.origin)
			args.Text("claims", a.claims)
		},
		func(r *int64, row store.Row) error { return row.Scan(r) })
	dropConfigVerb = store.NewVerb(store.Decl{Name: "lifecycles.drop"},
		func(a putArgs) []string { return []string{"lifecycle/" + a.name} },
		func(a putArgs, args *store.Args) { args.Text("name", a.name); args.Int("expected", a.expected) },
		func(r *int64, row store.Row) error { return row.Scan(r) })
	strandVerb = store.NewVerb(store.Decl{Name: "lifecycles.strand", Lane: store.Read, Slow: true}, nil,
		func(a strandArgs, args *store.Args) {
			args.Text("lifecycle", a.lifecycle)
			args.Text("statuses", a.statuses)
			args.Text("claims", a.claims)
			args.Text("flipped", a.flipped)
		},
		func(all *[]stranded, row store.Row) error {
			var s stranded
			err := row.Scan(&s.status, &s.open, &s.count)
			*all = append(*all, s)
			return err
		})
	behindVerb = store.NewVerb(store.Decl{Name: "lifecycles.behind", Lane: store.Read}, nil,
		func(a behindArgs, args *store.Args) {
			args.Text("lifecycle", a.lifecycle)
			args.Text("config", a.config)
		},
		func(all *[]string, row store.Row) error {
			var space string
			err := row.Scan(&space)
			*all = append(*all, space)
			return err
		})
	underwayVerb = store.NewVerb(store.Decl{Name: "lifecycles.underway", Lane: store.Read}, nil,
		func(list string, args *store.Args) { args.MaybeText("list", list) },
		func(all *[]string, row store.Row) error {
			var t string
			err := row.Scan(&t)
			*all = append(*all, t)
			return err
		})
)

// underway is how long transactions are waited for that may go by the old config.
const underway = 30 * time.Second

// register brings the config into force in a workspace, if there is none, or if it
// is to replace another.
func (s *site) register(ctx context.Context, replace bool) error {
	at, err := s.engine.Place(ctx, store.Write)
	if err != nil {
		return err
	}
	mine := text(s.config.StatusTypes)
	for range tries {
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

// notOf refuses a name that the other side has, in whatever workspace: operations are
// taken up and freed by the name of their lifecycle, by whoever has it.
func notOf(ctx context.Context, e *engine.Engine, origin, name string) error {
	shards, err := store.Shards(ctx, e)
	for _, shard := range shards {
		spaces, failed := ofVerb.DoAt(ctx, e, store.Place{Shard: shard}, ofArgs{name, origin})
		if failed != nil {
			return errors.Join(err, failed)
		}
		if len(spaces) > 0 {
			return fault.New(fault.Conflict, "there is a lifecycle %q already, which %s: choose another name", name, brought[origin])
		}
	}
	return err
}

type ofArgs struct{ name, origin string }

var ofVerb = store.NewVerb(store.Decl{Name: "lifecycles.of", Lane: store.Read}, nil,
	func(a ofArgs, args *store.Args) { args.Text("lifecycle", a.name); args.Text("origin", a.origin) },
	func(all *[]string, row store.Row) error {
		var space string
		err := row.Scan(&space)
		*all = append(*all, space)
		return err
	})

// brought says by whom a config was.
var brought = map[string]string{"program": "a program has brought", "door": "was put through the API"}

// origin is who brings the config.
func (c *Lifecycle) origin() string {
	if c.bound != nil {
		return "door"
	}
	return "program"
}

func text(v any) string {
	list, _ := json.Marshal(v) // of plain values, it does not fail
	return string(list)
}

// first tells that the config is not yet in force: it is only announced.
func (c inForce) first() bool { return c.revision == 0 || c.revision == 1 && c.wanted != "" }

// change replaces a config. Where it could strand somebody, it is announced first. What
// another node has announced already is not announced again, which would only make the
// other begin anew: nodes that bring the same config at once finish it together.
func (s *site) change(ctx context.Context, at store.Place, now, next inForce) error {
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

func takesAway(have, want string) bool {
	var old []string
	kept := has(want)
	return json.Unmarshal([]byte(have), &old) != nil || slices.ContainsFunc(old, func(s string) bool { return !kept(s) })
}

// has says whether a status is in a list as it is stored.
func has(list string) func(string) bool {
	var all []string
	_ = json.Unmarshal([]byte(list), &all) // what cannot be read has none
	return func(s string) bool { return slices.Contains(all, s) }
}

// differing returns what is in one of two lists and not in the other.
func differing(a, b []string) []string {
	only := []string{}
	for _, s := range slices.Concat(a, b) {
		if slices.Contains(a, s) != slices.Contains(b, s) {
			only = append(only, s)
		}
	}
	return only
}

// claimsInForce are the claim statuses of the config that is in force.
func (c inForce) claimsInForce() []string {
	if config, violations := lifecycles.Parse([]byte(c.config)); len(violations) == 0 {
		return config.ClaimStatuses()
	}
	return []string{}
}

// put writes a config, and raises the registry's revision with it.
func (s *site) put(ctx context.Context, at store.Place, expected int64, c inForce) (revision int64, err error) {
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
func (s *site) takeBack(ctx context.Context, at store.Place, revision int64, was inForce) error {
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
func (s *site) raised(ctx context.Context, f func(context.Context, *store.Tx) error) error {
	return s.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := store.Raise(ctx, tx); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// heal takes back a change whose node died in the middle of it, if there is one.
func (s *site) heal(ctx context.Context) {
	at, err := s.engine.Place(ctx, store.Write)
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
func (s *site) takeBackStale(ctx context.Context, at store.Place, now inForce) error {
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
func (s *site) settleDown(ctx context.Context, at store.Place) error {
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
func (s *site) strands(ctx context.Context, at store.Place, was string, next inForce, flipped []string) error {
	all, err := strandVerb.DoAt(ctx, s.engine, at, strandArgs{s.config.Workflow, next.statuses, next.claims, text(flipped)})
	if o, ok := s.ground.(*own); ok && err == nil {
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
