package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/live"
	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) liveRoutes() {
	a.live = &live.Hub{Source: liveSource{a}, Log: a.log,
		In: func(workspace string) context.Context { return store.InWorkspace(context.Background(), workspace) }}
	add(a, route{Method: http.MethodGet, Path: "live", ID: "getLive", Tag: "visibility", Summary: "Show what has changed in the watched topics, or follow them (text/event-stream).", Roles: readers, Stream: true,
		More: "Without a cursor there are no changes, only the states and a cursor. A stream has at most four messages a second."}, getLive)
}

type getLiveIn struct {
	Watch string `query:"watch" doc:"Topics, separated by commas: inbox, overview, nodes, approvals, races, lifecycle:NAME, entity:LIFECYCLE/ID, operations, runs, run:ID, batches, batch:ID, bulks, bulk:ID, wallet:ID, streams, stream:NAME, reactions, reaction:NAME, scopes, scope:KIND/ID, webhooks. Percent-encode commas and percent signs within a name."`
	// Since is not called cursor: it is no place in a list.
	Since string `query:"since" arg:"after" doc:"The cursor of an earlier response."`
}

func getLive(c *call, in *getLiveIn) (wire.Live, error) {
	w, err := watchedTopics(in.Watch)
	if err != nil {
		return wire.Live{}, err
	}
	streams, since := c.wantsStream(), in.Since
	if last := c.r.Header.Get("Last-Event-ID"); streams && last != "" {
		since = last
	}
	from, n, err := c.parseLiveCursor(since)
	if err != nil {
		return wire.Live{}, err
	}
	if !streams {
		m, err := c.api.live.Once(c.ctx(), w.match, w.states, from)
		return c.liveMessage(m, n), err
	}
	watcher, err := c.api.live.Watch(c.ctx(), c.key.Workspace, w.match, w.states, from)
	if err != nil {
		return wire.Live{}, err
	}
	defer watcher.Close()
	return wire.Live{}, c.send(func(ctx context.Context, emit func(message) error) error {
		for {
			m, err := watcher.Next(ctx)
			if err != nil {
				return nil // the caller has disconnected, as below
			}
			n++
			doc, event := c.liveMessage(m, n), "changes"
			if m.States != nil {
				event = "state"
			}
			if emit(message{doc.Cursor, event, doc}) != nil {
				return nil
			}
		}
	})
}

// parseLiveCursor parses a cursor: the number of a message, so that each has another id, and a place.
func (c *call) parseLiveCursor(cursor string) (*live.Place, int64, error) {
	if cursor == "" {
		return nil, 0, nil
	}
	text, generation, known := uncursor(c.route.ID, cursor)
	number, text, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	place, ok := live.Parse(text)
	if err != nil || n < 0 || !ok || !known {
		return nil, 0, fault.New(fault.Validation, "invalid cursor: use the cursor of an earlier response, or start again without one").With("field", "since")
	}
	if generation != c.api.engine.Generation() {
		place.Expire()
	}
	return &place, n, nil
}

// liveMessage converts a message, the nth of a client.
func (c *call) liveMessage(m live.Message, n int64) wire.Live {
	w := wire.Live{Cursor: c.cursor(strconv.FormatInt(n, 10) + " " + m.Place.Text()), At: timeOrNil(m.At), LagMs: m.Lag.Milliseconds(),
		Changes: []wire.LiveChange{}, Folded: []wire.LiveSubject{}, Reset: m.Reset}
	for _, i := range m.Items {
		change := wire.LiveChange{LiveSubject: liveSubjectOf(i.Stream, i.Version, 1), Name: i.Name, Actor: i.Actor, At: shapes.At(i.At)}
		if i.Subject == "" && len(i.Data) > 0 && len(i.Data) <= liveData {
			change.Data = i.Data
		}
		w.Changes = append(w.Changes, change)
	}
	for _, f := range m.Folds {
		w.Folded = append(w.Folded, liveSubjectOf(f.Stream, f.Version, f.Events))
	}
	if len(m.States) > 0 {
		w.State = liveStateOf(m.States)
	}
	return w
}

// liveSubjectOf converts the name of a stream: "$entity/invoice/17" is the entity invoice/17.
func liveSubjectOf(stream string, version int64, events int) wire.LiveSubject {
	s := wire.LiveSubject{Kind: "stream", Subject: stream, Version: version, Events: events}
	if id, ok := strings.CutPrefix(stream, bulkHistory); ok {
		s.Kind, s.Subject = "bulk", id
	} else if rest, ok := strings.CutPrefix(stream, "$"); ok {
		s.Kind, s.Subject, _ = strings.Cut(rest, "/")
	}
	return s
}

// liveStateOf collects states by topic.
func liveStateOf(values map[string]*live.Value) *wire.LiveState {
	var s wire.LiveState
	for topic, v := range values {
		_, name, _ := strings.Cut(topic, ":")
		switch value := v.Any.(type) {
		case *wire.LiveInbox:
			s.Inbox = value
		case *wire.Overview:
			s.Overview = value
		case []wire.Node:
			s.Nodes = &value
		case []wire.Approval:
			s.Approvals = &value
		case []wire.LiveRefusal:
			s.Races = &value
		case wire.Tally:
			if s.Counts == nil {
				s.Counts = make(map[string]wire.Tally)
			}
			s.Counts[name] = value
		case *wire.Wallet:
			if s.Wallets == nil {
				s.Wallets = make(map[string]*wire.Wallet)
			}
			s.Wallets[name] = value
		}
	}
	return &s
}

// bulkHistory begins the names of the histories of bulks, which are batches.
const bulkHistory = "$batch/" + batchengine.BulkPrefix

// watchList has the topics of one client: the events and the states that it gets.
type watchList struct {
	exact    map[string]bool // names of streams
	prefixes []string        // of names of streams
	users    bool            // all streams of users
	batches  bool            // all batches, without bulks
	decided  bool            // decisions of approvals
	states   []string
}

func (w *watchList) match(i *live.Item) bool {
	switch {
	case w.exact[i.Stream], w.users && i.Position > 0, w.batches && strings.HasPrefix(i.Stream, "$batch/") && !strings.HasPrefix(i.Stream, bulkHistory), w.decided && i.Name == "approvalDecided" && strings.HasPrefix(i.Stream, "$run/"):
		return true
	}
	return slices.ContainsFunc(w.prefixes, func(p string) bool { return strings.HasPrefix(i.Stream, p) })
}

// topics are what can be watched. A topic that ends in a colon has a name.
var topics = map[string]func(w *watchList, name string){
	"inbox":     func(w *watchList, _ string) { w.state("inbox") },
	"overview":  func(w *watchList, _ string) { w.state("overview") },
	"nodes":     func(w *watchList, _ string) { w.state("nodes") },
	"approvals": func(w *watchList, _ string) { w.decided = true; w.state("approvals") },
	"races":     func(w *watchList, _ string) { w.state("races") },
	"wallet:":   func(w *watchList, name string) { w.state("wallet:" + name) },
	"lifecycle:": func(w *watchList, name string) {
		w.prefixes = append(w.prefixes, "$entity/"+name+"/")
		w.state("counts:" + name)
	},
	"entity:":    func(w *watchList, name string) { w.exact["$entity/"+name] = true },
	"operations": func(w *watchList, _ string) { w.prefixes = append(w.prefixes, "$entity/", "$run/") },
	"runs":       func(w *watchList, _ string) { w.prefixes = append(w.prefixes, "$run/") },
	"run:":       func(w *watchList, name string) { w.exact["$run/"+name] = true },
	"batches":    func(w *watchList, _ string) { w.batches = true },
	"batch:":     func(w *watchList, name string) { w.exact["$batch/"+name] = true },
	"bulks":      func(w *watchList, _ string) { w.prefixes = append(w.prefixes, bulkHistory) },
	"bulk:":      func(w *watchList, name string) { w.exact[bulkHistory+name] = true },
	"streams":    func(w *watchList, _ string) { w.users = true },
	"stream:":    func(w *watchList, name string) { w.exact[name] = true },
	"reactions":  func(w *watchList, _ string) { w.prefixes = append(w.prefixes, "$reaction/") },
	"reaction:":  func(w *watchList, name string) { w.prefixes = append(w.prefixes, "$reaction/"+name+"/") },
	"scopes":     func(w *watchList, _ string) { w.prefixes = append(w.prefixes, "$scope/") },
	"scope:":     func(w *watchList, name string) { w.exact["$scope/"+name] = true },
	"webhooks":   func(w *watchList, _ string) { w.prefixes = append(w.prefixes, "$webhook/") },
}

// topicNames lists the topics for errors.
const topicNames = "inbox, overview, nodes, approvals, races, lifecycle:NAME, entity:LIFECYCLE/ID, operations, runs, run:ID, batches, batch:ID, bulks, bulk:ID, wallet:ID, streams, stream:NAME, reactions, reaction:NAME, scopes, scope:KIND/ID, webhooks"

func (w *watchList) state(topic string) {
	if !slices.Contains(w.states, topic) {
		w.states = append(w.states, topic)
	}
}

// watchedTopics parses a list of topics.
func watchedTopics(text string) (*watchList, error) {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Validation, format+": watch must be one or more of "+topicNames+", separated by commas", args...).With("field", "watch")
	}
	w := &watchList{exact: make(map[string]bool)}
	for one := range strings.SplitSeq(text, ",") {
		kind, name, named := strings.Cut(one, ":")
		if named {
			kind += ":"
		}
		name, err := url.PathUnescape(name)
		add := topics[kind]
		switch {
		case text == "":
			return nil, bad("watch is missing")
		case add == nil:
			return nil, bad("%q is not a topic", one)
		case err != nil, named && name == "", strings.ContainsRune(name, 0):
			return nil, bad("the topic %q has no valid name", one)
		case (kind == "entity:" || kind == "scope:") && !strings.Contains(strings.Trim(name, "/"), "/"):
			return nil, bad("the topic %q has a name without a slash", one)
		}
		add(w, name)
	}
	return w, nil
}

// liveSource reads a workspace for all of its watchers.
type liveSource struct{ api *API }

func (s liveSource) Start(ctx context.Context) (live.Place, error) {
	if err := feed.OpenIfEnabled(ctx, s.api.engine); err != nil {
		return live.Place{}, err
	}
	return live.Start(ctx, s.api.engine)
}

func (s liveSource) Read(ctx context.Context, from live.Place, far bool, limit int) (live.Batch, error) {
	if err := feed.OpenIfEnabled(ctx, s.api.engine); err != nil { // the workspace may have been created since
		return live.Batch{}, err
	}
	return live.Read(ctx, s.api.engine, from, far, limit)
}

// liveData is how many bytes the data of an event may have to be told.
const liveData = 512

// liveEntries is how many entries of a list a state has.
const liveEntries = 100

// State returns the state of a topic as the routes that list it return it.
func (s liveSource) State(ctx context.Context, topic string) (any, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return nil, err
	}
	c := &call{api: s.api, r: r, identity: identity{key: keys.Key{Workspace: store.WorkspaceOf(ctx)}}}
	kind, name, _ := strings.Cut(topic, ":")
	switch kind {
	case "inbox":
		return c.liveInbox()
	case "overview":
		o, err := getOverview(c, nil)
		return &o, err
	case "nodes":
		found, err := nodes.List(ctx, c.doer(), "", liveEntries)
		return convert(found, c.nodeOf), err
	case "approvals":
		found, err := runengine.Approvals(ctx, c.doer(), "pending", "", "", liveEntries)
		return convert(found, func(f store.Found[runengine.Approval]) wire.Approval { return approvalOf(f.Row) }), err
	case "races":
		found, err := refusals.Recent(ctx, c.doer(), "", liveEntries)
		return convert(found, liveRefusalOf), err
	case "counts":
		t, err := inbox.Statuses(ctx, c.doer(), name)
		return tallyOf(t), err
	default: // wallet
		w, err := batch.GetWallet(ctx, c.doer(), name)
		if fault.CodeOf(err) == fault.NotFound {
			return (*wire.Wallet)(nil), nil
		}
		return new(walletOf(w)), err
	}
}

// liveInbox returns the inbox with its first entries.
func (c *call) liveInbox() (*wire.LiveInbox, error) {
	found, counts, err := inbox.List(c.ctx(), c.doer())
	if err != nil {
		return nil, err
	}
	found = found[:min(len(found), liveEntries)]
	all := &wire.LiveInbox{Items: make([]wire.InboxItem, len(found)), Counts: countsOf(counts)}
	for i := range found {
		if all.Items[i], err = c.inboxItem(&found[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func liveRefusalOf(r refusals.Refusal) wire.LiveRefusal {
	return wire.LiveRefusal{ID: r.ID, Stream: r.Stream, Version: r.Version, Action: r.Action, Actor: r.Actor, Code: fault.Code(r.Code), At: shapes.At(r.At)}
}

func convert[T, W any](all []T, show func(T) W) []W {
	out := make([]W, len(all))
	for i, x := range all {
		out[i] = show(x)
	}
	return out
}
