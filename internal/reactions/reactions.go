// Package reactions delivers the events of streams to named reactions. Each
// event that a reaction selects is delivered at least once and in stream order.
// Writes that are committed with the acknowledgment happen exactly once.
//
// The position of a reaction on a stream is one row: the last version handled
// (the watermark), the last version that concerns the reaction (due), and a
// lease. A transaction that appends events also writes a due notice for each
// reaction that selects them. No scan is needed, and a commit that becomes
// visible late is never skipped. On PostgreSQL a due notice is an insert-only
// row; it is collected into the position row before a take. An append therefore
// never waits for a worker on the stream, and a worker never waits for an append.
//
// Rejected: a global event number with a watermark over it (a transaction that
// commits late is skipped); one due notice per stream, written only if there is
// none (the ack that deletes it does not see the append that relied on it); due
// notices in the position row itself on PostgreSQL (two reactions that append to
// each other's streams deadlock).
package reactions

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Definition says which events a reaction follows and how it is served. It is
// stored in the database, so every node knows it.
type Definition struct {
	Name string
	// Events are the names of the events to deliver. An empty list or "*" selects
	// every event.
	Events []string
	// Streams is a pattern (RE2) that selects the streams. "" selects every user
	// stream. A pattern that begins with ^\$ selects histories instead.
	Streams string
	// FromNow skips the events that exist when the reaction is registered.
	FromNow bool
	Options
}

// Options configures how a reaction is served.
type Options struct {
	MaxRetries   int           `json:"maxRetries"`
	MaxCrashes   int           `json:"maxDeaths"`
	BlockOnError bool          `json:"blockOnError"`
	Backoff      Backoff       `json:"backoff"`
	Lease        time.Duration `json:"lease"`
	Priority     int           `json:"priority"`
	Handler      string        `json:"handler,omitempty"`
	FromNow      bool          `json:"fromNow"` // as given when the selection was last changed
	// Program is set when a program registered the reaction and serves it. It
	// stays set until the reaction is registered with another selection.
	Program bool `json:"program,omitempty"`
}

// Backoff is the pause before a failed event is retried.
type Backoff struct {
	Kind string        `json:"kind"` // fixed, linear, exponential
	Base time.Duration `json:"base"`
	Max  time.Duration `json:"max"`
	// Steady disables the jitter. Jitter keeps events that failed together from
	// being retried together.
	Steady bool `json:"steady,omitempty"`
}

// Pause returns the pause after the given number of failures in a row.
func (b Backoff) Pause(failures int) time.Duration {
	pause := min(b.Base, b.Max)
	grown := pause
	for n := 1; n < failures && grown > 0 && pause < b.Max; n++ {
		switch b.Kind {
		case "linear":
			if failures > int(b.Max/grown) {
				pause = b.Max
			} else {
				pause = grown * time.Duration(failures)
			}
			n = failures
		case "exponential":
			pause = min(2*pause, b.Max)
		default:
			n = failures
		}
	}
	pause = min(pause, b.Max)
	if b.Steady {
		return pause
	}
	return clock.Jitter(pause)
}

// Limits and defaults.
const (
	DefaultRetries = 3
	DefaultCrashes = 5
	DefaultLease   = 10 * time.Second
	maxPriority    = 1000
	// Own is the prefix of stream patterns that select histories.
	Own = `^\$`
)

// DefaultOptions returns the options of a reaction that sets none.
func DefaultOptions() Options {
	return Options{MaxRetries: DefaultRetries, MaxCrashes: DefaultCrashes, BlockOnError: true,
		Backoff: Backoff{Kind: "exponential", Base: time.Second, Max: 5 * time.Minute}, Lease: DefaultLease}
}

// Reserved reports whether a name is reserved for Holdfast.
func Reserved(name string) bool { return strings.HasPrefix(name, "$") }

// Name prefixes of the reactions behind after-effects and webhooks. Users repair
// them like their own reactions.
const (
	AfterPrefix = "$after:"
	HookPrefix  = "$hook:"
)

// Kind returns reaction, afterEffect or webhook, or "" for a reaction that
// Holdfast serves and repairs itself.
func Kind(name string) string {
	switch {
	case strings.HasPrefix(name, AfterPrefix):
		return "afterEffect"
	case strings.HasPrefix(name, HookPrefix):
		return "webhook"
	case Reserved(name):
		return ""
	}
	return "reaction"
}

// CheckName returns [fault.Forbidden] for a reserved name.
func CheckName(name string) error {
	if Reserved(name) {
		return fault.New(fault.Forbidden, "reaction name %q is reserved: choose a name that does not begin with $", name)
	}
	return nil
}

// Source returns the event table that a definition reads.
func (d *Definition) Source() store.EventTable {
	if strings.HasPrefix(d.Streams, Own) {
		return store.HistoryEvents
	}
	return store.StreamEvents
}

// Check validates a definition.
func (d *Definition) Check() error {
	if err := strictjson.Text("reaction", d.Name, events.MaxName); err != nil {
		return err
	}
	if strings.Contains(d.Name, "/") || d.Name == "*" {
		return fault.New(fault.Validation, "a reaction name must not contain a slash and must not be \"*\", got %q", d.Name)
	}
	for _, e := range d.Events {
		if err := strictjson.Text("event", e, events.MaxName); err != nil {
			return err
		}
	}
	if _, err := regexp.Compile(d.Streams); err != nil {
		return fault.New(fault.Validation, "stream pattern %q is not a valid regular expression (RE2): %s", d.Streams, err)
	}
	return d.Options.check()
}

func (o *Options) check() error {
	switch {
	case o.MaxRetries < 0 || o.MaxRetries > 1_000_000:
		return fault.New(fault.Validation, "maxRetries must be between 0 and 1000000, got %d", o.MaxRetries)
	case o.MaxCrashes < 1 || o.MaxCrashes > 1_000_000:
		return fault.New(fault.Validation, "maxDeaths must be between 1 and 1000000, got %d", o.MaxCrashes)
	case o.Lease < time.Millisecond || o.Lease > 24*time.Hour:
		return fault.New(fault.Validation, "lease must be between 1ms and 24h, got %s", o.Lease)
	case o.Priority < -maxPriority || o.Priority > maxPriority:
		return fault.New(fault.Validation, "priority must be between -%d and %d, got %d", maxPriority, maxPriority, o.Priority)
	case !slices.Contains([]string{"fixed", "linear", "exponential"}, o.Backoff.Kind):
		return fault.New(fault.Validation, "backoff must be fixed, linear or exponential, got %q", o.Backoff.Kind)
	case o.Backoff.Base < 0 || o.Backoff.Max < o.Backoff.Base || o.Backoff.Max > 365*24*time.Hour:
		return fault.New(fault.Validation, "backoff must satisfy 0 <= base <= max <= 365 days, got base %s and max %s", o.Backoff.Base, o.Backoff.Max)
	}
	return nil
}

// Info is a registered reaction.
type Info struct {
	Definition
	// Settled is set once all transactions that were in flight at registration
	// have ended. The reaction is served before that too.
	Settled   bool
	CreatedAt time.Time
	UpdatedAt time.Time

	state string // waiting, live, removed
	waits string // the transactions that it waits for, as JSON
	base  int64  // the epochs of new positions start here
}

// eventsJSON returns the stored form of the event names.
func (d *Definition) eventsJSON() string {
	if len(d.Events) == 0 || slices.Contains(d.Events, "*") {
		return `["*"]`
	}
	names := slices.Sorted(slices.Values(d.Events))
	return store.JSON(slices.Compact(names))
}

// Same reports whether two definitions select the same events.
func (d *Definition) Same(o *Definition) bool {
	return d.eventsJSON() == o.eventsJSON() && d.Streams == o.Streams
}

type putArgs struct {
	Definition
	base int64
}

type seedPositionsArgs struct {
	reaction string   `arg:"reaction"`
	Streams  [][2]any `arg:"streams"`
	skip     bool     `arg:"skip"`
}

type deleteUnfollowedArgs struct {
	reaction string   `arg:"reaction"`
	Streams  []string `arg:"streams"`
}

// awaited names a reaction and the transactions that it waits for.
type awaited struct {
	reaction string `arg:"reaction"`
	tx       string `arg:"awaited"`
}

type deletePositionsArgs struct {
	reaction string `arg:"reaction"`
	limit    int    `arg:"limit"`
}

type behindArgs struct {
	reaction string `arg:"reaction"`
	after    string `arg:"after"`
	limit    int    `arg:"limit"`
}

type head struct {
	stream  string
	version int64
}

var (
	listVerb = store.NewVerb(store.Decl{Name: "reactions.list", Lane: store.Read}, nil, store.TextArg("name"), scanInfo)
	putVerb  = store.NewVerb(store.Decl{Name: "reactions.put"},
		func(a putArgs) []string { return []string{"reaction/" + a.Name} },
		func(a putArgs, args *store.Args) {
			args.Text("name", a.Name)
			args.Text("source", string(a.Source()))
			args.Text("events", a.eventsJSON())
			args.Text("streams", a.Streams)
			args.Text("options", store.JSON(a.Options))
			args.Int("deaths", int64(a.MaxCrashes))
			args.Int("priority", int64(a.Priority))
			args.Int("base", a.base)
		}, store.ScanApplied)
	updateOptionsVerb = store.NewVerb(store.Decl{Name: "reactions.update_options", Idempotent: true},
		func(d Definition) []string { return []string{"reaction/" + d.Name} },
		func(d Definition, args *store.Args) {
			args.Text("name", d.Name)
			args.Text("options", store.JSON(d.Options))
			args.Int("deaths", int64(d.MaxCrashes))
			args.Int("priority", int64(d.Priority))
		}, store.ScanApplied)
	removeVerb = store.NewVerb(store.Decl{Name: "reactions.remove"},
		func(name string) []string { return []string{"reaction/" + name} },
		store.TextArg("name"), store.ScanApplied)
	listBehindStreamsVerb   = store.VerbOf[behindArgs](store.Decl{Name: "reactions.list_behind_streams", Lane: store.Read}, nil, scanHead)
	listBehindHistoriesVerb = store.VerbOf[behindArgs](store.Decl{Name: "reactions.list_behind_histories", Lane: store.Read}, nil, scanHead)
	seedPositionsVerb       = store.VerbOf[seedPositionsArgs](store.Decl{Name: "reactions.seed_positions", Idempotent: true}, nil, store.ScanValue[int64]).
				Wakes(func(a seedPositionsArgs) []string { return []string{store.DueTopic(a.reaction)} })
	deleteUnfollowedVerb       = store.VerbOf[deleteUnfollowedArgs](store.Decl{Name: "reactions.delete_unfollowed", Lane: store.Work}, nil, store.CountRows)
	collectDueOfReactionVerb   = store.NewVerb(store.Decl{Name: "reactions.collect_due_of_reaction", Lane: store.Work}, nil, store.TextArg("reaction"), store.CountRows)
	recordOpenTransactionsVerb = store.NewVerb(store.Decl{Name: "reactions.record_open_transactions", Lane: store.Work}, nil, store.TextArg("reaction"), scanTexts)
	countOpenTransactionsVerb  = store.NewVerb(store.Decl{Name: "reactions.count_open_transactions", Lane: store.Read}, nil, store.TextArg("reaction"),
		func(w *waiting, row store.Row) error { return row.Scan(&w.left, &w.waits) })
	markLiveVerb                   = store.VerbOf[awaited](store.Decl{Name: "reactions.mark_live", Lane: store.Work}, nil, store.CountRows)
	recordPreparedTransactionsVerb = store.VerbOf[awaited](store.Decl{Name: "reactions.record_prepared_transactions", Lane: store.Work}, nil, scanTexts)
	listUnfinishedVerb             = store.NewVerb(store.Decl{Name: "reactions.list_unfinished", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(u *[3]string) []any { return []any{&u[0], &u[1], &u[2]} }))
	deletePositionsVerb = store.VerbOf[deletePositionsArgs](store.Decl{Name: "reactions.delete_positions", Lane: store.Work}, nil, store.CountRows)
	deleteVerb          = store.VerbOf[awaited](store.Decl{Name: "reactions.delete", Lane: store.Work}, nil, store.CountRows)
)

type waiting struct {
	left  int64
	waits string
}

const dropPage = 5000

var scanHead = store.Each(func(h *head) []any { return []any{&h.stream, &h.version} })

func scanTexts(all *[]string, row store.Row) error {
	var text *string
	err := row.Scan(&text)
	if text != nil {
		*all = append(*all, *text)
	}
	return err
}

func scanInfo(all *[]Info, row store.Row) error {
	var i Info
	err := i.scan(row)
	*all = append(*all, i)
	return err
}

// scan reads a reaction from the columns after those of before.
func (i *Info) scan(row store.Row, before ...any) error {
	var source, names, options string
	columns := append(before, &i.Name, &source, &names, &i.Streams, &options, &i.base, &i.state, &i.waits, &i.CreatedAt, &i.UpdatedAt)
	if err := row.Scan(columns...); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(names), &i.Events); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(options), &i.Options); err != nil {
		return err
	}
	i.FromNow = i.Options.FromNow
	i.Settled = i.state == "live"
	return nil
}

// List returns the reactions of the context's workspace: all of them, or only
// the named one.
func List(ctx context.Context, d store.Doer, name string) ([]Info, error) {
	all, err := listVerb.Do(ctx, d, name)
	return slices.DeleteFunc(all, func(i Info) bool { return i.state == "removed" }), err
}

// Get returns a reaction, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, name string) (Info, error) {
	all, err := List(ctx, d, name)
	if err != nil {
		return Info{}, err
	}
	if len(all) == 0 || name == "" {
		return Info{}, fault.New(fault.NotFound, "reaction %q does not exist", name)
	}
	return all[0], nil
}

// Handled is a reaction that is served by a handler, with its workspace.
type Handled struct {
	Workspace string
	Info
}

type listByHandlerKindArgs struct {
	kind      string `arg:"kind"`
	workspace string `arg:"after_workspace"`
	name      string `arg:"after_name"`
	limit     int    `arg:"limit"`
}

var listByHandlerKindVerb = store.VerbOf[listByHandlerKindArgs](store.Decl{Name: "reactions.list_by_handler_kind", Lane: store.Read}, nil,
	func(all *[]Handled, row store.Row) error {
		var h Handled
		err := h.scan(row, &h.Workspace)
		*all = append(*all, h)
		return err
	})

// AllHandled returns the reactions of all workspaces whose handler is of the given kind.
func AllHandled(ctx context.Context, d store.Doer, kind string) (all []Handled, err error) {
	return store.Pages(ctx, d, listByHandlerKindVerb, page, listByHandlerKindArgs{kind: kind, limit: page},
		func(last Handled) listByHandlerKindArgs {
			return listByHandlerKindArgs{kind, last.Workspace, last.Name, page}
		})
}
