// Package reactions follows streams with named code: each event of each stream
// that a reaction wants, in order, at least once, and its writes with the
// acknowledgement once.
//
// Where a reaction stands on a stream is one row: the last version handled (the
// watermark), the last version that concerns it (due), and a hold. Who writes
// events writes a mark for each reaction that wants them, in the same
// transaction; so there is nothing to scan for, and nothing that a later commit
// with a smaller number could be hidden behind. On PostgreSQL a mark is a row
// that is only inserted, and gathered into the reaction's row before a take: an
// append never waits for somebody who works on the stream, nor the other way
// round.
//
// Rejected: a global number for events and a watermark over it (a transaction
// that commits late is skipped), one mark a stream that is written only when
// there is none (the ack that removes it does not see the append that relied on
// it), and marks in the row itself on PostgreSQL (two reactions that append to
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

// Definition is what a reaction follows and how it is served. It is kept in the
// database, so that every node knows it.
type Definition struct {
	Name string
	// Events are the names that it wants; none, or "*", is every name.
	Events []string
	// Streams is a pattern (RE2) of the streams that it follows; "" is every
	// stream of the user's. A pattern that begins with ^\$ follows histories
	// instead.
	Streams string
	// FromNow leaves out what is there when it is registered.
	FromNow bool
	Options
}

// Options is how a reaction is served.
type Options struct {
	MaxRetries   int           `json:"maxRetries"`
	MaxCrashes   int           `json:"maxDeaths"`
	BlockOnError bool          `json:"blockOnError"`
	Backoff      Backoff       `json:"backoff"`
	Lease        time.Duration `json:"lease"`
	Priority     int           `json:"priority"`
	Handler      string        `json:"handler,omitempty"`
	FromNow      bool          `json:"fromNow"` // as it was registered
	// Program says that a program has registered it, and serves it; it stays so until it is registered to follow something else.
	Program bool `json:"program,omitempty"`
}

// Backoff is the pause before an event is tried again.
type Backoff struct {
	Kind string        `json:"kind"` // fixed, linear, exponential
	Base time.Duration `json:"base"`
	Max  time.Duration `json:"max"`
	// Steady leaves out the jitter that keeps those who failed together from
	// coming back together.
	Steady bool `json:"steady,omitempty"`
}

// Pause is the pause after so many failures in a row.
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
	// Own begins the patterns that follow histories.
	Own = `^\$`
)

// DefaultOptions are those of a reaction that sets none.
func DefaultOptions() Options {
	return Options{MaxRetries: DefaultRetries, MaxCrashes: DefaultCrashes, BlockOnError: true,
		Backoff: Backoff{Kind: "exponential", Base: time.Second, Max: 5 * time.Minute}, Lease: DefaultLease}
}

// Reserved says whether a name is one that Holdfast keeps to itself.
func Reserved(name string) bool { return strings.HasPrefix(name, "$") }

// How the names of reactions begin that are made for something else, and that people
// repair as they do their own: the after-effects of lifecycles, and webhooks.
const (
	AfterPrefix = "$after:"
	HookPrefix  = "$hook:"
)

// Kind says what a reaction is for: reaction, afterEffect or webhook, or "" for one that
// Holdfast serves itself and repairs itself.
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

// CheckName refuses the name of a user's reaction that is Holdfast's own.
func CheckName(name string) error {
	if Reserved(name) {
		return fault.New(fault.Forbidden, "the reaction %q is Holdfast's own: names that begin with $ are reserved", name)
	}
	return nil
}

// Source is which events a definition follows.
func (d *Definition) Source() store.EventTable {
	if strings.HasPrefix(d.Streams, Own) {
		return store.HistoryEvents
	}
	return store.StreamEvents
}

// Check refuses a definition that makes no sense.
func (d *Definition) Check() error {
	if err := strictjson.Text("reaction", d.Name, events.MaxName); err != nil {
		return err
	}
	if strings.Contains(d.Name, "/") || d.Name == "*" {
		return fault.New(fault.Validation, "a reaction's name has no slash and is not \"*\": %q", d.Name)
	}
	for _, e := range d.Events {
		if err := strictjson.Text("event", e, events.MaxName); err != nil {
			return err
		}
	}
	if _, err := regexp.Compile(d.Streams); err != nil {
		return fault.New(fault.Validation, "the pattern %q of streams is no regular expression (RE2): %s", d.Streams, err)
	}
	return d.Options.check()
}

func (o *Options) check() error {
	switch {
	case o.MaxRetries < 0 || o.MaxRetries > 1_000_000:
		return fault.New(fault.Validation, "maxRetries is %d: it is 0 to 1000000", o.MaxRetries)
	case o.MaxCrashes < 1 || o.MaxCrashes > 1_000_000:
		return fault.New(fault.Validation, "maxDeaths is %d: it is 1 to 1000000", o.MaxCrashes)
	case o.Lease < time.Millisecond || o.Lease > 24*time.Hour:
		return fault.New(fault.Validation, "a lease is a millisecond to a day, not %s", o.Lease)
	case o.Priority < -maxPriority || o.Priority > maxPriority:
		return fault.New(fault.Validation, "a priority is -%d to %d, not %d", maxPriority, maxPriority, o.Priority)
	case !slices.Contains([]string{"fixed", "linear", "exponential"}, o.Backoff.Kind):
		return fault.New(fault.Validation, "a backoff is fixed, linear or exponential, not %q", o.Backoff.Kind)
	case o.Backoff.Base < 0 || o.Backoff.Max < o.Backoff.Base || o.Backoff.Max > 365*24*time.Hour:
		return fault.New(fault.Validation, "a backoff grows from its base to its max, a year at the most, not from %s to %s", o.Backoff.Base, o.Backoff.Max)
	}
	return nil
}

// Info is a reaction as it is registered.
type Info struct {
	Definition
	// Settled says that whatever was under way when it was registered has
	// ended; it is served before that too.
	Settled   bool
	CreatedAt time.Time
	UpdatedAt time.Time

	state, waits string
	base         int64
}

// eventsJSON is the stored form of the names.
func (d *Definition) eventsJSON() string {
	if len(d.Events) == 0 || slices.Contains(d.Events, "*") {
		return `["*"]`
	}
	names := slices.Sorted(slices.Values(d.Events))
	return store.JSON(slices.Compact(names))
}

// Same says whether two definitions follow the same.
func (d *Definition) Same(o *Definition) bool {
	return d.eventsJSON() == o.eventsJSON() && d.Streams == o.Streams
}

type putArgs struct {
	Definition
	base int64
}

type seedArgs struct {
	reaction string   `arg:"reaction"`
	Streams  [][2]any `arg:"streams"`
	skip     bool     `arg:"skip"`
}

type retireArgs struct {
	reaction string   `arg:"reaction"`
	Streams  []string `arg:"streams"`
}

// awaited is a transaction that a reaction waits for.
type awaited struct {
	reaction string `arg:"reaction"`
	tx       string `arg:"awaited"`
}

type dropArgs struct {
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
	tuneVerb = store.NewVerb(store.Decl{Name: "reactions.tune", Idempotent: true},
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
	behindVerb    = store.VerbOf[behindArgs](store.Decl{Name: "reactions.behind", Lane: store.Read}, nil, scanHead)
	behindOwnVerb = store.VerbOf[behindArgs](store.Decl{Name: "reactions.behindown", Lane: store.Read}, nil, scanHead)
	seedVerb      = store.VerbOf[seedArgs](store.Decl{Name: "reactions.seed", Idempotent: true}, nil, store.ScanValue[int64]).
			Wakes(func(a seedArgs) []string { return []string{store.DueTopic(a.reaction)} })
	retireVerb     = store.VerbOf[retireArgs](store.Decl{Name: "reactions.retire", Lane: store.Work}, nil, store.CountRows)
	collectOneVerb = store.NewVerb(store.Decl{Name: "reactions.gatherone", Lane: store.Work}, nil, store.TextArg("reaction"), store.CountRows)
	awaitVerb      = store.NewVerb(store.Decl{Name: "reactions.await", Lane: store.Work}, nil, store.TextArg("reaction"), scanTexts)
	endedVerb      = store.NewVerb(store.Decl{Name: "reactions.ended", Lane: store.Read}, nil, store.TextArg("reaction"),
		func(w *waiting, row store.Row) error { return row.Scan(&w.left, &w.waits) })
	liveVerb       = store.VerbOf[awaited](store.Decl{Name: "reactions.live", Lane: store.Work}, nil, store.CountRows)
	preparedVerb   = store.VerbOf[awaited](store.Decl{Name: "reactions.prepared", Lane: store.Work}, nil, scanTexts)
	unfinishedVerb = store.NewVerb(store.Decl{Name: "reactions.unfinished", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(u *[3]string) []any { return []any{&u[0], &u[1], &u[2]} }))
	dropVerb   = store.VerbOf[dropArgs](store.Decl{Name: "reactions.drop", Lane: store.Work}, nil, store.CountRows)
	forgetVerb = store.VerbOf[awaited](store.Decl{Name: "reactions.forget", Lane: store.Work}, nil, store.CountRows)
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

// scan reads a reaction, behind other columns.
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

// List returns the reactions of the context's workspace, or the one that is
// named.
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
		return Info{}, fault.New(fault.NotFound, "there is no reaction %q", name)
	}
	return all[0], nil
}

// Handled is a reaction that is served by a handler, and where.
type Handled struct {
	Workspace string
	Info
}

type handledArgs struct {
	kind      string `arg:"kind"`
	workspace string `arg:"after_workspace"`
	name      string `arg:"after_name"`
	limit     int    `arg:"limit"`
}

var handledVerb = store.VerbOf[handledArgs](store.Decl{Name: "reactions.handled", Lane: store.Read}, nil,
	func(all *[]Handled, row store.Row) error {
		var h Handled
		err := h.scan(row, &h.Workspace)
		*all = append(*all, h)
		return err
	})

// AllHandled returns the reactions of all workspaces whose handlers are of a kind.
func AllHandled(ctx context.Context, d store.Doer, kind string) (all []Handled, err error) {
	return store.Pages(ctx, d, handledVerb, page, handledArgs{kind: kind, limit: page},
		func(last Handled) handledArgs { return handledArgs{kind, last.Workspace, last.Name, page} })
}
