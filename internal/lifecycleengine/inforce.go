package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

// inForce is the config in force in a workspace.
type inForce struct {
	revision int64  // of this config, not of the workspace's registry; 0 if there is none
	statuses string // a JSON list
	config   string // its text
	wanted   string // during an announced change, the statuses of the next config; else ""
	stale    bool   // the change was announced long ago: its node has crashed
	origin   string
	claims   string // the claim statuses, a JSON list; during an announced change, those of both configs
}

type putArgs struct {
	name     string
	expected int64
	inForce
}

type countStrandedArgs struct{ lifecycle, statuses, claims, flipped string }

type listOutdatedArgs struct{ lifecycle, config string }

type stranded struct {
	status string
	open   bool // counts operations that are in the status or lead there
	count  int64
}

type findWorkspaceArgs struct{ name, origin string }

type listPublishedArgs struct {
	since int64
	limit int
}

type publishedConfig struct {
	workspace, name, config string
	at                      int64 // its last change, in ms
}

var (
	getConfigVerb = store.NewVerb(store.Decl{Name: "lifecycles.get", Lane: store.Read}, nil,
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
	deleteConfigVerb = store.NewVerb(store.Decl{Name: "lifecycles.delete"},
		func(a putArgs) []string { return []string{"lifecycle/" + a.name} },
		func(a putArgs, args *store.Args) { args.Text("name", a.name); args.Int("expected", a.expected) },
		func(r *int64, row store.Row) error { return row.Scan(r) })
	countStrandedVerb = store.NewVerb(store.Decl{Name: "lifecycles.count_stranded", Lane: store.Read, Slow: true}, nil,
		func(a countStrandedArgs, args *store.Args) {
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
	listOutdatedVerb = store.NewVerb(store.Decl{Name: "lifecycles.list_outdated", Lane: store.Read}, nil,
		func(a listOutdatedArgs, args *store.Args) {
			args.Text("lifecycle", a.lifecycle)
			args.Text("config", a.config)
		},
		func(all *[]string, row store.Row) error {
			var space string
			err := row.Scan(&space)
			*all = append(*all, space)
			return err
		})
	// listOpenTransactionsVerb returns the transactions in flight or, of a given JSON list, those that still are.
	listOpenTransactionsVerb = store.NewVerb(store.Decl{Name: "lifecycles.list_open_transactions", Lane: store.Read}, nil,
		func(list string, args *store.Args) { args.MaybeText("list", list) },
		func(all *[]string, row store.Row) error {
			var t string
			err := row.Scan(&t)
			*all = append(*all, t)
			return err
		})
)

var findWorkspaceVerb = store.NewVerb(store.Decl{Name: "lifecycles.find_workspace", Lane: store.Read}, nil,
	func(a findWorkspaceArgs, args *store.Args) {
		args.Text("lifecycle", a.name)
		args.Text("origin", a.origin)
	},
	func(all *[]string, row store.Row) error {
		var space string
		err := row.Scan(&space)
		*all = append(*all, space)
		return err
	})

var listPublishedVerb = store.NewVerb(store.Decl{Name: "lifecycles.list_published", Lane: store.Read}, nil,
	func(a listPublishedArgs, args *store.Args) {
		args.Int("since", a.since)
		args.Int("limit", int64(a.limit))
	},
	func(all *[]publishedConfig, row store.Row) error {
		var p publishedConfig
		err := row.Scan(&p.workspace, &p.name, &p.config, &p.at)
		*all = append(*all, p)
		return err
	})

// maxListed limits how many published lifecycles of a workspace are listed.
const maxListed = 10_000

// listPublished returns the lifecycles published into the context's workspace.
func listPublished(ctx context.Context, d store.Doer) ([]publishedConfig, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	return listPublishedVerb.DoAt(ctx, d, at, listPublishedArgs{limit: maxListed})
}

// first reports whether the first config is not yet in force but only announced, or missing.
func (c inForce) first() bool { return c.revision == 0 || c.revision == 1 && c.wanted != "" }

// shown returns the revision that users see: 1 for the first config in force. Its announcement took the stored revision
// 1, as the announcement of any later change takes one.
func (c inForce) shown() int64 { return max(c.revision-1, 0) }

// claimsInForce returns the claim statuses of the config in force.
func (c inForce) claimsInForce() []string {
	if config, violations := lifecycleconfig.Parse([]byte(c.config)); len(violations) == 0 {
		return config.ClaimStatuses()
	}
	return []string{}
}

// takesAway reports whether a stored list of statuses has one that the next list lacks.
func takesAway(have, next string) bool {
	var old []string
	remains := has(next)
	return json.Unmarshal([]byte(have), &old) != nil || slices.ContainsFunc(old, func(s string) bool { return !remains(s) })
}

// has returns a function that reports whether a stored list contains a status.
func has(list string) func(string) bool {
	var all []string
	_ = json.Unmarshal([]byte(list), &all) // an unreadable list is empty
	return func(s string) bool { return slices.Contains(all, s) }
}

// differing returns the elements that are in exactly one of two lists.
func differing(a, b []string) []string {
	only := []string{}
	for _, s := range slices.Concat(a, b) {
		if slices.Contains(a, s) != slices.Contains(b, s) {
			only = append(only, s)
		}
	}
	return only
}

// checkOrigin refuses a name that the other origin uses in any workspace, because operations are
// resumed and released by the name of their lifecycle.
func checkOrigin(ctx context.Context, e *engine.Engine, origin, name string) error {
	shards, err := store.Shards(ctx, e)
	for _, shard := range shards {
		spaces, failed := findWorkspaceVerb.DoAt(ctx, e, store.Partition{Shard: shard}, findWorkspaceArgs{name, origin})
		if failed != nil {
			return errors.Join(err, failed)
		}
		if len(spaces) > 0 {
			return fault.New(fault.Conflict, "lifecycle %q already exists and %s: choose another name", name, originText[origin])
		}
	}
	return err
}

// RevisionOf returns the revision of a lifecycle's config in the context's workspace, or 0.
func RevisionOf(ctx context.Context, e *engine.Engine, name string) (int64, error) {
	at, err := e.Partition(ctx, store.Read)
	if err != nil {
		return 0, err
	}
	now, err := getConfigVerb.DoAt(ctx, e, at, name)
	return now.shown(), err
}
