package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type reactionsCommand struct {
	List    reactionsList    `cmd:"" help:"List the reactions of a workspace, and the after-effects of its lifecycles."`
	Show    reactionsShow    `cmd:"" help:"Show a reaction."`
	Put     reactionsPut     `cmd:"" help:"Register a reaction, or change one."`
	Delete  reactionsDelete  `cmd:"" help:"Remove a reaction."`
	Streams reactionsStreams `cmd:"" help:"Tell where a reaction stands on its streams."`
	Unblock reactionsUnblock `cmd:"" help:"Let blocked streams try again."`
	Skip    reactionsSkip    `cmd:"" help:"Pass over the events that streams are blocked at."`
	Reset   reactionsReset   `cmd:"" help:"Have a reaction begin streams anew."`
}

type reactionsList struct {
	pageFlags
}

func (c *reactionsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListReactionsPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"NAME", "EVENTS", "STREAMS", "HANDLER", "UPDATED"}}
	for _, x := range l.Items {
		t.add(x.Name, strings.Join(x.Events, ","), x.Streams, x.Handler, at(x.UpdatedAt))
	}
	return d.showList(t, l.Next, err)
}

type reactionArg struct {
	Name string `arg:"" help:"The reaction's name."`
}

type reactionsShow struct {
	targetFlags
	reactionArg
}

func (c *reactionsShow) Run(ctx context.Context, d *connection) error {
	x, err := d.GetReaction(ctx, c.Name, d.raw())
	return d.show(reactionFacts(x), err)
}

func reactionFacts(x wire.Reaction) *table {
	b := x.Backoff
	return facts("name", x.Name, "events", strings.Join(x.Events, ","), "streams", x.Streams, "source", x.Source, "start", x.Start,
		"handler", x.Handler, "retries", strconv.Itoa(x.MaxRetries), "deaths", strconv.Itoa(x.MaxDeaths), "blocks on error", yes(x.BlockOnError),
		"backoff", b.Kind+" "+ms(b.BaseMs)+" to "+ms(b.MaxMs), "lease", ms(x.LeaseMs), "priority", strconv.Itoa(x.Priority),
		"created", at(x.CreatedAt), "updated", at(x.UpdatedAt))
}

type reactionsPut struct {
	idempotencyFlags
	reactionArg
	Events       []string      `setting:"-" required:"" placeholder:"NAME,…" help:"The names of events; * for all."`
	Streams      string        `setting:"-" placeholder:"RE2" help:"A pattern of streams. By default all."`
	Source       string        `setting:"-" enum:",event,history" default:"" placeholder:"SOURCE" help:"The streams that are appended to (event), or the histories (history). By default as the pattern says."`
	Start        string        `setting:"-" enum:",beginning,now" default:"" placeholder:"WHERE" help:"Begin with the first event (beginning) or with the next (now). By default beginning."`
	MaxRetries   *int          `setting:"-" placeholder:"N" help:"How often an event is tried again before its stream is blocked. By default 3."`
	MaxDeaths    *int          `setting:"-" placeholder:"N" help:"How many workers an event may take down. By default 5."`
	BlockOnError *bool         `setting:"-" negatable:"" help:"Block a stream past the retries, rather than pass over the event. By default so."`
	Backoff      string        `setting:"-" enum:",fixed,linear,exponential" default:"" placeholder:"KIND" help:"How pauses grow: fixed, linear or exponential; with --backoff-base and --backoff-max."`
	BackoffBase  time.Duration `setting:"-" default:"1s" placeholder:"DURATION" help:"The first pause, for --backoff. By default 1s."`
	BackoffMax   time.Duration `setting:"-" default:"1m" placeholder:"DURATION" help:"The longest pause, for --backoff. By default 1m."`
	Lease        time.Duration `setting:"-" placeholder:"DURATION" help:"How long a stream is held. By default 10s."`
	Priority     int           `setting:"-" placeholder:"N" help:"Those with more go first."`
	Handler      string        `setting:"-" placeholder:"NAME" help:"The handler that serves it. Without one it is claimed by hand."`
}

func (c *reactionsPut) Run(ctx context.Context, to *target) error {
	in := wire.PutReaction{Events: c.Events, Streams: c.Streams, Source: c.Source, MaxRetries: c.MaxRetries, MaxDeaths: c.MaxDeaths, BlockOnError: c.BlockOnError,
		LeaseMs: wire.Ms(c.Lease), Start: c.Start, Priority: c.Priority, Handler: c.Handler}
	if c.Backoff != "" {
		in.Backoff = &wire.Backoff{Kind: c.Backoff, BaseMs: wire.Ms(c.BackoffBase), MaxMs: wire.Ms(c.BackoffMax)}
	}
	d, err := to.openUnless(ctx, positive("--lease", c.Lease))
	if err != nil {
		return err
	}
	x, err := d.PutReaction(ctx, c.Name, in, c.options(d)...)
	return d.show(reactionFacts(x), err)
}

type reactionsDelete struct {
	idempotencyFlags
	reactionArg
}

func (c *reactionsDelete) Run(ctx context.Context, d *connection) error {
	return d.show(facts("removed", c.Name), d.DeleteReaction(ctx, c.Name, c.options(d)...))
}

type reactionsStreams struct {
	pageFlags
	Name     string `arg:"" help:"The reaction's name; * for all."`
	Matching string `setting:"-" placeholder:"RE2" help:"Only streams whose names match."`
	Blocked  *bool  `setting:"-" negatable:"" help:"Only those that are blocked, or are not."`
}

func (c *reactionsStreams) Run(ctx context.Context, d *connection) error {
	l, err := d.ListPositionsPage(ctx, c.Name, client.PositionFilter{Stream: c.Matching, Blocked: c.Blocked}, c.page(), d.raw())
	t := &table{heads: []string{"REACTION", "STREAM", "HANDLED", "HEAD", "RETRY", "BLOCKED", "HELD BY", "ERROR"}}
	for _, x := range l.Items {
		t.add(x.Reaction, x.Stream, number64(x.Watermark), number64(x.Head), strconv.Itoa(x.Retry), yes(x.Blocked), x.LeasedBy, x.Error)
	}
	return d.showList(t, l.Next, err)
}

// repairFlags say which streams a repair is for.
type repairFlags struct {
	idempotencyFlags
	Name     string   `arg:"" help:"The reaction's name; * for all."`
	Stream   []string `arg:"" optional:"" help:"The streams, by name."`
	Matching string   `setting:"-" placeholder:"RE2" help:"All streams whose names match."`
	Blocked  *bool    `setting:"-" negatable:"" help:"All that are blocked, or are not."`
	All      bool     `setting:"-" help:"All streams."`
}

// repair says what the command line chose. To choose nothing is not to choose all.
func (f repairFlags) repair() (wire.Repair, error) {
	filter := f.Matching != "" || f.Blocked != nil
	switch {
	case len(f.Stream) > 0 && (filter || f.All), f.All && filter:
		return wire.Repair{}, misuse("streams are named, chosen by --matching and --blocked, or --all: one of these")
	case len(f.Stream) > 0:
		return wire.Repair{Streams: f.Stream}, nil
	case filter:
		return wire.Repair{Filter: &wire.RepairFilter{Stream: f.Matching, Blocked: f.Blocked}}, nil
	case f.All:
		return wire.Repair{}, nil
	}
	return wire.Repair{}, misuse("which streams? Name them, or choose by --matching, --blocked or --all")
}

type repairCall func(*client.Client, context.Context, string, wire.Repair, ...client.Option) (wire.Repaired, error)

func (f repairFlags) run(ctx context.Context, to *target, call repairCall) error {
	in, bad := f.repair()
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	done, err := call(d.Client, ctx, f.Name, in, f.options(d)...)
	t := &table{heads: []string{"STREAM", "DONE"}}
	for _, s := range done.Streams {
		t.add(s, "yes")
	}
	for _, s := range done.Pending {
		t.add(s, "when the lease of who works on it ends")
	}
	for _, s := range done.Held {
		t.add(s, "no: somebody works on it")
	}
	return d.show(t, err)
}

type reactionsUnblock struct{ repairFlags }

func (c *reactionsUnblock) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, (*client.Client).UnblockReactions)
}

type reactionsSkip struct{ repairFlags }

func (c *reactionsSkip) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, (*client.Client).SkipReactions)
}

type reactionsReset struct{ repairFlags }

func (c *reactionsReset) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, (*client.Client).ResetReactions)
}
