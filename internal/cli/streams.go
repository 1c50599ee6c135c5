package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type streamsCommand struct {
	Append streamsAppend `cmd:"" help:"Append an event to a stream."`
	Read   streamsRead   `cmd:"" help:"Read a stream."`
	Close  streamsClose  `cmd:"" help:"Close a stream."`
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
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	done, err := d.CloseStream(ctx, c.Stream, wire.CloseStream{Mode: c.Mode, ExpectedVersion: c.ExpectVersion, Snapshot: snapshot}, c.options(d)...)
	return d.show(facts("stream", done.Stream, "mode", done.Mode, "last version", number64(done.LastVersion)), err)
}

type eventsCommand struct {
	pageFlags
	Follow bool `setting:"-" help:"Print events as they arrive, until Ctrl-C."`
}

func (c *eventsCommand) Run(ctx context.Context, to *target) error {
	to.feed = true
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	if c.Follow {
		return d.follow(ctx, c.Cursor)
	}
	l, err := d.ReadFeedPage(ctx, c.page(), d.raw())
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
	for e, err := range d.Client.FollowFeed(ctx, after) {
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		case err != nil:
			return err
		case d.Output == "json":
			err = lines.Encode(e)
		default:
			_, err = fmt.Fprintf(d.stdout, "%s  %s  %d  %s  %s\n", at(e.At), cell(e.Stream), e.Version, cell(e.Name), cell(string(e.Data)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
