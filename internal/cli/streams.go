package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type streamsCommand struct {
	List     streamsList     `cmd:"" help:"List streams."`
	Show     streamsShow     `cmd:"" help:"Show a stream and the number of its events, in total and by name."`
	Append   streamsAppend   `cmd:"" help:"Append an event to a stream."`
	Read     streamsRead     `cmd:"" help:"Read a stream."`
	Close    streamsClose    `cmd:"" help:"Close a stream."`
	Truncate streamsTruncate `cmd:"" help:"Delete the events of a stream below a version."`
}

type streamsList struct {
	pageFlags
	Prefix string `setting:"-" placeholder:"TEXT" help:"List only streams whose names begin with this text."`
}

func (c *streamsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListStreamsPage(ctx, client.StreamFilter{Prefix: c.Prefix}, c.page(), d.raw())
	t := &table{heads: []string{"STREAM", "STATE", "FIRST", "LAST", "LAST EVENT", "AT"}}
	for _, s := range l.Items {
		t.add(s.Name, stateOf(s), number64(s.FirstVersion), number64(s.LastVersion), s.LastName, at(s.LastAt))
	}
	return d.showList(t, l.Next, err)
}

// stateOf returns the state of a stream and, if it is closed, the mode.
func stateOf(s wire.Stream) string {
	if s.Mode != "" {
		return s.State + " (" + s.Mode + ")"
	}
	return s.State
}

type streamsShow struct {
	targetFlags
	Stream string `arg:"" help:"Stream name."`
}

func (c *streamsShow) Run(ctx context.Context, d *connection) error {
	s, err := d.GetStream(ctx, c.Stream, d.raw())
	all := facts("stream", s.Name, "state", stateOf(s.Stream), "first version", number64(s.FirstVersion), "last version", number64(s.LastVersion),
		"events", number64(s.Events), "first at", at(s.FirstAt), "last at", at(s.LastAt), "last event", s.LastName)
	for _, name := range slices.Sorted(maps.Keys(s.Names)) {
		all.add("events "+name, number64(s.Names[name]))
	}
	return d.show(all, err)
}

type streamsTruncate struct {
	idempotencyFlags
	Stream   string `arg:"" help:"Stream name."`
	Before   int64  `setting:"-" required:"" placeholder:"N" help:"First version to keep."`
	Snapshot string `setting:"-" placeholder:"JSON" help:"State computed from the deleted events, from which aggregates start: JSON, or @FILE."`
}

func (c *streamsTruncate) Run(ctx context.Context, to *target) error {
	state, bad := document("--snapshot", c.Snapshot)
	to.closes = true
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	s, err := d.TruncateStream(ctx, c.Stream, wire.TruncateStream{Before: c.Before, Snapshot: state}, c.options(d)...)
	return d.show(facts("stream", s.Name, "first version", number64(s.FirstVersion), "last version", number64(s.LastVersion)), err)
}

type streamsAppend struct {
	idempotencyFlags
	Stream        string `arg:"" help:"Stream name."`
	Event         string `arg:"" help:"Event name."`
	Data          string `setting:"-" placeholder:"JSON" help:"Event data: JSON, or @FILE."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Fail unless the stream is at this version; use =-1 to require that the stream does not exist."`
	Correlation   string `setting:"-" placeholder:"TEXT" help:"Correlation id of the event."`
	Causation     string `setting:"-" placeholder:"TEXT" help:"Causation id of the event."`
}

func (c *streamsAppend) Run(ctx context.Context, to *target) error {
	data, bad := document("--data", c.Data)
	in := wire.Append{ExpectedVersion: c.ExpectVersion, Events: []wire.NewEvent{{Name: c.Event, Data: data, Correlation: c.Correlation, Causation: c.Causation}}}
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	done, err := d.AppendEvents(ctx, c.Stream, in, c.options(d)...)
	return d.show(facts("stream", done.Stream, "last version", number64(done.LastVersion)), err)
}

type streamsRead struct {
	pageFlags
	Stream   string `arg:"" help:"Stream name."`
	From     *int64 `setting:"-" placeholder:"N" help:"Version to start at. Default: the first version, or the last with --backward."`
	Backward bool   `setting:"-" help:"Read the newest events first."`
}

func (c *streamsRead) Run(ctx context.Context, d *connection) error {
	l, err := d.ReadStreamPage(ctx, c.Stream, client.StreamRange{From: c.From, Backward: c.Backward}, c.page(), d.raw())
	return d.showList(eventTable(l.Items), l.Next, err)
}

type streamsClose struct {
	idempotencyFlags
	Stream        string `arg:"" help:"Stream name."`
	Mode          string `setting:"-" required:"" enum:"archive,tombstone,restart" placeholder:"MODE" help:"Close mode: archive, tombstone or restart."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Fail unless the stream is at this version. Required for restart: the version that the snapshot covers."`
	Snapshot      string `setting:"-" placeholder:"JSON" help:"Snapshot for restart: JSON, or @FILE."`
}

func (c *streamsClose) Run(ctx context.Context, to *target) error {
	snapshot, bad := document("--snapshot", c.Snapshot)
	to.closes = true
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	done, err := d.CloseStream(ctx, c.Stream, wire.CloseStream{Mode: c.Mode, ExpectedVersion: c.ExpectVersion, Snapshot: snapshot}, c.options(d)...)
	return d.show(facts("stream", done.Stream, "mode", done.Mode, "last version", number64(done.LastVersion)), err)
}

type eventsCommand struct {
	pageFlags
	Follow      bool      `setting:"-" help:"Print events as they arrive, until Ctrl-C."`
	Stream      string    `setting:"-" placeholder:"STREAM" help:"Search only this stream, which may be a history such as $$entity/invoice/17. Default: all streams."`
	Name        string    `setting:"-" placeholder:"NAMES" help:"Search for events with these names, separated by commas."`
	Correlation string    `setting:"-" placeholder:"TEXT" help:"Search for events with this correlation id."`
	Actor       string    `setting:"-" placeholder:"TEXT" help:"Search for events of this actor."`
	Since       time.Time `setting:"-" placeholder:"TIME" help:"Search for events from this time on (RFC 3339)."`
	Until       time.Time `setting:"-" placeholder:"TIME" help:"Search for events before this time (RFC 3339)."`
	Backward    bool      `setting:"-" help:"Print the newest events first."`
}

func (c *eventsCommand) filter() client.EventFilter {
	return client.EventFilter{Stream: c.Stream, Name: c.Name, Correlation: c.Correlation, Actor: c.Actor, Since: c.Since, Until: c.Until, Backward: c.Backward}
}

func (c *eventsCommand) Run(ctx context.Context, to *target) error {
	searches := c.filter() != client.EventFilter{}
	if c.Follow && searches {
		return misuse("--follow cannot be combined with the flags of a search: omit them, or omit --follow")
	}
	to.feed = true
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	if c.Follow {
		return d.follow(ctx, c.Cursor)
	}
	var l wire.List[wire.Event]
	if searches {
		l, err = d.SearchEventsPage(ctx, c.filter(), c.page(), d.raw())
	} else {
		l, err = d.ReadFeedPage(ctx, c.page(), d.raw())
	}
	t := &table{heads: []string{"STREAM", "VERSION", "NAME", "AT", "DATA"}}
	for _, e := range l.Items {
		t.add(e.Stream, number64(e.Version), e.Name, at(e.At), string(e.Data))
	}
	return d.showList(t, l.Next, err)
}

// follow prints events as they arrive until ctx is cancelled, which is not an error.
func (d *connection) follow(ctx context.Context, after string) error {
	lines := json.NewEncoder(d.stdout)
	lines.SetEscapeHTML(false)
	return untilCancelled(ctx, d.Client.FollowFeed(ctx, after), func(e wire.Event) error {
		if d.Output == "json" {
			return lines.Encode(e)
		}
		_, err := fmt.Fprintf(d.stdout, "%s  %s  %d  %s  %s\n", at(e.At), cell(e.Stream), e.Version, cell(e.Name), cell(string(e.Data)))
		return err
	})
}
