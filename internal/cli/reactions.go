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
	List    reactionsList    `cmd:"" help:"List a workspace's reactions and its lifecycles' after-effects."`
	Show    reactionsShow    `cmd:"" help:"Show a reaction."`
	Put     reactionsPut     `cmd:"" help:"Register or change a reaction."`
	Delete  reactionsDelete  `cmd:"" help:"Delete a reaction."`
	Streams reactionsStreams `cmd:"" help:"List a reaction's positions in its streams."`
	Unblock reactionsUnblock `cmd:"" help:"Unblock streams, so that their events are retried."`
	Skip    reactionsSkip    `cmd:"" help:"Skip the events that block streams."`
	Reset   reactionsReset   `cmd:"" help:"Reset positions in streams, so that all events are handled again."`
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
	Name string `arg:"" help:"Reaction name."`
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
		"handler", x.Handler, "retries", strconv.Itoa(x.MaxRetries), "crashes", strconv.Itoa(x.MaxDeaths), "blocks on error", yes(x.BlockOnError),
		"backoff", b.Kind+" "+ms(b.BaseMs)+" to "+ms(b.MaxMs), "lease", ms(x.LeaseMs), "priority", strconv.Itoa(x.Priority),
		"created", at(x.CreatedAt), "updated", at(x.UpdatedAt))
}

type reactionsPut struct {
	idempotencyFlags
	reactionArg
	Events       []string      `setting:"-" required:"" placeholder:"NAME,…" help:"Event names; * for all."`
	Streams      string        `setting:"-" placeholder:"RE2" help:"Pattern that stream names must match. Default: all streams."`
	Source       string        `setting:"-" enum:",event,history" default:"" placeholder:"SOURCE" help:"Where events come from: user streams (event) or histories (history). Default: derived from the pattern."`
	Start        string        `setting:"-" enum:",beginning,now" default:"" placeholder:"WHERE" help:"Start at the first event (beginning) or at the next new event (now). Default: beginning."`
	MaxRetries   *int          `setting:"-" placeholder:"N" help:"Number of times a failed event is retried before its stream is blocked, or the event is skipped. Default: 3."`
	MaxDeaths    *int          `setting:"-" placeholder:"N" help:"Number of worker crashes on an event after which its stream is blocked. Default: 5."`
	BlockOnError *bool         `setting:"-" negatable:"" help:"Block a stream after the last retry, instead of skipping the event. Default: true."`
	Backoff      string        `setting:"-" enum:",fixed,linear,exponential" default:"" placeholder:"KIND" help:"Backoff between retries: fixed, linear or exponential. Set its delays with --backoff-base and --backoff-max."`
	BackoffBase  time.Duration `setting:"-" default:"1s" placeholder:"DURATION" help:"First delay, if --backoff is set. Default: 1s."`
	BackoffMax   time.Duration `setting:"-" default:"1m" placeholder:"DURATION" help:"Longest delay, if --backoff is set. Default: 1m."`
	Lease        time.Duration `setting:"-" placeholder:"DURATION" help:"Duration of the lease on a stream. Default: 10s."`
	Priority     int           `setting:"-" placeholder:"N" help:"Priority: a head start, in seconds, over the events of other reactions. Default: 0."`
	Handler      string        `setting:"-" placeholder:"NAME" help:"Handler for the events. Without a handler, streams are claimed manually."`
}

func (c *reactionsPut) Run(ctx context.Context, to *target) error {
	in := wire.PutReaction{Events: c.Events, Streams: c.Streams, Source: c.Source, MaxRetries: c.MaxRetries, MaxDeaths: c.MaxDeaths, BlockOnError: c.BlockOnError,
		LeaseMs: wire.Ms(c.Lease), Start: c.Start, Priority: c.Priority, Handler: c.Handler}
	if c.Backoff != "" {
		in.Backoff = &wire.Backoff{Kind: c.Backoff, BaseMs: wire.Ms(c.BackoffBase), MaxMs: wire.Ms(c.BackoffMax)}
	}
	d, err := to.openUnless(ctx, notNegative("--lease", c.Lease))
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
	Name     string `arg:"" help:"Reaction name; * for all."`
	Matching string `setting:"-" placeholder:"RE2" help:"List only streams whose names match this regular expression (RE2)."`
	Blocked  *bool  `setting:"-" negatable:"" help:"List only blocked streams or, with --no-blocked, only streams that are not blocked."`
}

func (c *reactionsStreams) Run(ctx context.Context, d *connection) error {
	l, err := d.ListPositionsPage(ctx, c.Name, client.PositionFilter{Pattern: c.Matching, Blocked: c.Blocked}, c.page(), d.raw())
	t := &table{heads: []string{"REACTION", "STREAM", "HANDLED", "HEAD", "RETRY", "BLOCKED", "LEASED BY", "ERROR"}}
	for _, x := range l.Items {
		t.add(x.Reaction, x.Stream, number64(x.Watermark), number64(x.Head), strconv.Itoa(x.Retry), yes(x.Blocked), x.LeasedBy, x.Error)
	}
	return d.showList(t, l.Next, err)
}

// repairFlags select the streams of a repair.
type repairFlags struct {
	idempotencyFlags
	Name     string   `arg:"" help:"Reaction name; * for all."`
	Stream   []string `arg:"" optional:"" help:"Stream names."`
	Matching string   `setting:"-" placeholder:"RE2" help:"Select all streams whose names match this regular expression (RE2)."`
	Blocked  *bool    `setting:"-" negatable:"" help:"Select all blocked streams or, with --no-blocked, all streams that are not blocked."`
	All      bool     `setting:"-" help:"Select all streams."`
}

// repair returns the selection. An empty selection is an error: it does not select all.
func (f repairFlags) repair() (wire.Repair, error) {
	filter := f.Matching != "" || f.Blocked != nil
	switch {
	case len(f.Stream) > 0 && (filter || f.All), f.All && filter:
		return wire.Repair{}, misuse("select streams in only one way: by name, with --matching and --blocked, or with --all")
	case len(f.Stream) > 0:
		return wire.Repair{Streams: f.Stream}, nil
	case filter:
		return wire.Repair{Filter: &wire.RepairFilter{Stream: f.Matching, Blocked: f.Blocked}}, nil
	case f.All:
		return wire.Repair{}, nil
	}
	return wire.Repair{}, misuse("no streams were selected: name them, or use --matching, --blocked or --all")
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
	// A leased stream is reset when its lease ends. Unblock and skip do not change a leased stream.
	for _, s := range done.Pending {
		t.add(s, "when its lease ends")
	}
	for _, s := range done.Held {
		t.add(s, "no: it is leased")
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
