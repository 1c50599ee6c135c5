package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wallets"
	"github.com/holdfast-go/holdfast/internal/webhooks"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) findRoutes() {
	add(a, route{Method: http.MethodGet, Path: "search", ID: "search", Tag: "visibility", Summary: "Find objects by the beginning of their ids, keys or names.", Roles: readers,
		More: "The search is case-sensitive. It returns up to 10 objects of each kind, exact matches first. A kind can be given, or several separated by commas. Requests are found by their whole idempotency key, and by admins only."}, find)
}

const (
	// minSearch is the minimum length of the text of a search, in characters.
	minSearch = 2
	// maxMatches is how many objects of a kind a search returns.
	maxMatches = 10
	// maxGroups is in how many lifecycles and kinds of scopes a search looks.
	maxGroups = 100
)

// finder is a search. Every object is found by the key of its table: the object itself, and the first ones behind it.
type finder struct {
	*call
	text string
	more bool // there are more objects of the current kind
}

// finders find the objects of each kind.
var finders = []struct {
	kind string
	find func(*finder) ([]wire.Match, error)
}{
	{"entity", (*finder).entities},
	{"run", (*finder).runs},
	{"batch", (*finder).batches},
	{"stream", (*finder).streams},
	{"wallet", (*finder).wallets},
	{"scope", (*finder).scopes},
	{"operation", (*finder).operations},
	{"request", (*finder).requests},
	{"handler", (*finder).handlers},
	{"reaction", (*finder).reactions},
	{"lifecycle", (*finder).lifecycles},
	{"definition", (*finder).definitions},
	{"webhook", (*finder).webhooks},
}

type findIn struct {
	Q    string `query:"q" doc:"The text, at least 2 characters."`
	Kind string `query:"kind" doc:"Find only these kinds, separated by commas."`
}

func find(c *call, in *findIn) (wire.Matches, error) {
	out := wire.Matches{Matches: []wire.Match{}, More: []string{}}
	if n := utf8.RuneCountInString(in.Q); n < minSearch {
		return out, fault.New(fault.Validation, "q must have at least %d characters, got %d: set it to the beginning of an id, a key or a name", minSearch, n).With("pointer", "/q")
	}
	only, err := kindsToFind(in.Kind)
	if err != nil {
		return out, err
	}
	for _, x := range finders {
		if len(only) > 0 && !slices.Contains(only, x.kind) {
			continue
		}
		f := &finder{call: c, text: in.Q}
		found, err := x.find(f)
		if err != nil {
			return out, err
		}
		slices.SortStableFunc(found, exactFirst)
		if len(found) > maxMatches {
			found, f.more = found[:maxMatches], true
		}
		if f.more {
			out.More = append(out.More, x.kind)
		}
		for _, m := range found {
			m.Kind = x.kind
			out.Matches = append(out.Matches, m)
		}
	}
	slices.SortStableFunc(out.Matches, exactFirst)
	return out, nil
}

func kindsToFind(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	only := strings.Split(text, ",")
	for _, kind := range only {
		known := make([]string, len(finders))
		for i, x := range finders {
			known[i] = x.kind
		}
		if !slices.Contains(known, kind) {
			return nil, fault.New(fault.Validation, "kind must be one of %s, or several of them separated by commas, got %.80q", strings.Join(known, ", "), kind).With("pointer", "/kind")
		}
	}
	return only, nil
}

func exactFirst(a, b wire.Match) int {
	switch {
	case a.Exact == b.Exact:
		return 0
	case a.Exact:
		return -1
	}
	return 1
}

// match returns a match of an object with a path.
func match(id, text, status string, path ...string) wire.Match {
	for i, part := range path {
		path[i] = url.PathEscape(part)
	}
	return wire.Match{ID: id, Status: status, Exact: id == text, Route: table.Base + strings.Join(path, "/")}
}

// limited returns a context in which a list ends early if its rows are large. Then there may be more.
func (f *finder) limited() context.Context { return store.NewBudget(room.SmallBytes).In(f.ctx()) }

// absent reports whether an error means that there is no object with the text as its id, which may not even be a valid one.
func absent(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.NotFound || code == fault.Validation
}

// byKey finds the object with an id, and in the list of all objects those behind it whose ids begin with it.
func byKey[T any](f *finder, text string, get func(ctx context.Context, id string) (T, error), list func(ctx context.Context, after string, limit int) ([]T, error), show func(T) wire.Match) (all []wire.Match, err error) {
	if one, err := get(f.ctx(), text); err == nil {
		all = append(all, show(one))
	} else if !absent(err) {
		return nil, err
	}
	ctx := f.limited()
	some, err := list(ctx, text, maxMatches+1)
	for _, x := range some {
		m := show(x)
		if !strings.HasPrefix(m.ID, text) {
			return all, err
		}
		all = append(all, m)
	}
	f.more = f.more || store.Cut(ctx)
	return all, err
}

// on passes the request's doer to a function.
func on[A, T any](f *finder, call func(context.Context, store.Doer, A) (T, error)) func(context.Context, A) (T, error) {
	return func(ctx context.Context, a A) (T, error) { return call(ctx, f.doer(), a) }
}

// listOn passes the request's doer to a list.
func listOn[T any](f *finder, call func(context.Context, store.Doer, string, int) ([]T, error)) func(context.Context, string, int) ([]T, error) {
	return func(ctx context.Context, after string, limit int) ([]T, error) {
		return call(ctx, f.doer(), after, limit)
	}
}

// rows returns what a list found.
func rows[T any](found []store.Found[T], err error) (all []T, _ error) {
	for _, x := range found {
		if x.Wanted {
			all = append(all, x.Row)
		}
	}
	return all, err
}

// inGroups finds objects in lifecycles or kinds of scopes. The text is the beginning of an id, or of "group/id".
func (f *finder) inGroups(groups []string, find func(group, text string) ([]wire.Match, error)) (all []wire.Match, err error) {
	for _, group := range groups {
		texts := []string{f.text}
		if id, ok := strings.CutPrefix(f.text, group+"/"); ok && id != "" {
			texts = append(texts, id)
		}
		for _, text := range texts {
			some, err := find(group, text)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

// few returns the groups in which a search looks: of very many, those that the text names, and the first.
func (f *finder) few(groups []string) []string {
	if len(groups) <= maxGroups {
		return groups
	}
	f.more = true
	few := groups[:maxGroups:maxGroups]
	for _, group := range groups[maxGroups:] {
		if strings.HasPrefix(f.text, group+"/") {
			few = append(few, group)
		}
	}
	return few
}

func (f *finder) entities() ([]wire.Match, error) {
	names, err := lifecycleengine.Names(f.ctx(), f.api.engine)
	if err != nil {
		return nil, err
	}
	return f.inGroups(f.few(names), func(name, text string) ([]wire.Match, error) {
		l, err := f.lifecycle(name)
		if err != nil {
			return nil, err
		}
		return byKey(f, text, func(ctx context.Context, id string) (rawEntity, error) {
			e, err := l.Get(ctx, f.api.engine, id)
			if fault.CodeOf(err) == fault.Unavailable { // this server cannot use the user's table
				err, f.more = fault.New(fault.NotFound, "%s", err), true
			}
			return e, err
		},
			func(ctx context.Context, after string, limit int) ([]rawEntity, error) {
				found, err := l.List(ctx, f.api.engine, entities.Filter{}, after, limit)
				if fault.CodeOf(err) == fault.Validation { // rows of a user's table are found by their whole ids only
					return nil, nil
				}
				return rows(found, err)
			}, func(e rawEntity) wire.Match {
				m := match(e.ID, text, e.Status, "lifecycles", name, "entities", e.ID)
				m.Lifecycle = name
				return m
			})
	})
}

// runs finds runs by their ids, the newest first, and by their keys.
func (f *finder) runs() (all []wire.Match, err error) {
	add := func(id, key, status string) {
		m := match(id, f.text, status, "workflow-runs", id)
		m.Name, m.Exact = key, m.Exact || key == f.text
		all = append(all, m)
	}
	ctx := f.limited()
	found, err := rows(runengine.List(ctx, f.doer(), runengine.Filter{}, store.PrefixEnd(f.text), maxMatches+1))
	if err != nil {
		return nil, err
	}
	f.more = store.Cut(ctx)
	for _, r := range found {
		if !strings.HasPrefix(r.ID, f.text) {
			f.more = false
			break
		}
		add(r.ID, r.Key, r.Status)
	}
	keyed, err := runengine.ListByKey(f.ctx(), f.doer(), f.text, maxMatches+1)
	for _, k := range keyed {
		if !slices.ContainsFunc(all, func(m wire.Match) bool { return m.ID == k.ID }) {
			add(k.ID, k.Key, k.Status)
		}
	}
	return all, err
}

func (f *finder) batches() ([]wire.Match, error) {
	return byKey(f, f.text, on(f, func(ctx context.Context, d store.Doer, id string) (batchengine.Batch, error) {
		return batchengine.Get(ctx, d, batchengine.PublicID(id))
	}), func(ctx context.Context, after string, limit int) ([]batchengine.Batch, error) {
		return rows(batchengine.List(ctx, f.doer(), batchengine.Filter{}, false, after, limit))
	}, func(b batchengine.Batch) wire.Match { return match(b.ID, f.text, b.Status, "batches", b.ID) })
}

func (f *finder) streams() (all []wire.Match, err error) {
	found, err := events.ListStreams(f.ctx(), f.doer(), events.ListStreamsArgs{Prefix: f.text, Limit: maxMatches + 1})
	if absent(err) {
		return nil, nil
	}
	for _, s := range found {
		all = append(all, match(s.Name, f.text, s.State, "streams", s.Name))
	}
	return all, err
}

func (f *finder) wallets() ([]wire.Match, error) {
	return byKey(f, f.text, on(f, wallets.Get), listOn(f, wallets.List), func(w wallets.Wallet) wire.Match { return match(w.ID, f.text, "", "wallets", w.ID) })
}

func (f *finder) scopes() ([]wire.Match, error) {
	kinds, err := scopestore.ListKinds(f.ctx(), f.doer(), "", maxGroups+1)
	if err != nil {
		return nil, err
	}
	if named, _, ok := strings.Cut(f.text, "/"); ok && len(kinds) > maxGroups && !slices.Contains(kinds, named) {
		kinds = append(kinds, named)
	}
	return f.inGroups(f.few(kinds), func(kind, text string) (all []wire.Match, err error) {
		found, err := scopestore.List(f.ctx(), f.doer(), scopestore.ListArgs{Kind: kind, Prefix: text, Limit: maxMatches + 1})
		if absent(err) {
			return nil, nil
		}
		for _, s := range found {
			if s.Exists {
				m := match(s.ID, text, "", "scopes", kind, s.ID)
				m.ScopeKind = kind
				all = append(all, m)
			}
		}
		f.more = f.more || len(found) > maxMatches // some of them may have been deleted
		return all, err
	})
}

// operations finds those of entities that have not ended, and others by their whole ids.
func (f *finder) operations() ([]wire.Match, error) {
	return byKey(f, f.text, func(_ context.Context, id string) (wire.Operation, error) {
		return getOperation(f.call, &operationIn{ID: id})
	},
		func(ctx context.Context, after string, limit int) (all []wire.Operation, err error) {
			found, err := lifecycleengine.OperationsWith(ctx, f.api.engine, "", after, limit, func(lifecycleengine.Operation) bool { return false })
			for _, x := range found {
				all = append(all, operationOf(f.call, x.Operation, nil))
			}
			return all, err
		}, func(o wire.Operation) wire.Match {
			m := match(o.ID, f.text, o.State, "operations", o.ID)
			m.Name = o.Subject
			return m
		})
}

// requests finds requests by their whole keys, which are stored as hashes.
func (f *finder) requests() ([]wire.Match, error) {
	if f.key.Role != keys.Admin || f.key.Restricted() { // as getRequest
		return nil, nil
	}
	q, err := getRequest(f.call, &getRequestIn{Key: f.text})
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []wire.Match{match(f.text, f.text, q.Requests[0].State, "requests", f.text)}, nil
}

func (f *finder) handlers() ([]wire.Match, error) {
	return byKey(f, f.text, on(f, remotehandler.Get), listOn(f, remotehandler.List), func(h remotehandler.Handler) wire.Match { return match(h.Name, f.text, "", "handlers", h.Name) })
}

func (f *finder) reactions() (all []wire.Match, err error) {
	found, err := reactions.List(f.ctx(), f.doer(), "")
	for _, x := range found {
		if kind := reactions.Kind(x.Name); kind != "" && kind != "webhook" && strings.HasPrefix(x.Name, f.text) {
			all = append(all, match(x.Name, f.text, "", "reactions", x.Name))
		}
	}
	return all, err
}

func (f *finder) lifecycles() (all []wire.Match, err error) {
	names, err := lifecycleengine.Names(f.ctx(), f.api.engine)
	for _, name := range names {
		if strings.HasPrefix(name, f.text) {
			all = append(all, match(name, f.text, "", "lifecycles", name))
		}
	}
	return all, err
}

func (f *finder) definitions() ([]wire.Match, error) {
	return byKey(f, f.text, on(f, runengine.Definition), listOn(f, runengine.Definitions), func(d runengine.StoredDefinition) wire.Match {
		return match(d.ID, f.text, "", "workflow-definitions", d.ID)
	})
}

func (f *finder) webhooks() ([]wire.Match, error) {
	return byKey(f, f.text, on(f, webhooks.Get), listOn(f, webhooks.List), func(w webhooks.Webhook) wire.Match {
		m := match(w.ID, f.text, "", "webhooks", w.ID)
		m.Name = w.Name
		return m
	})
}
