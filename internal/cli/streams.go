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
	Close  streamsClose  `cmd:"" help:"Close the books of a stream."`
}

type streamsAppend struct {
	idempotencyFlags
	Stream        string `arg:"" help:"The stream's name."`
	Event         string `arg:"" help:"The event's name."`
	Data          string `setting:"-" placeholder:"JSON" help:"What it says: JSON, or @FILE."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Only if this is the stream's last version; =-1 if there is no stream yet."`
	Correlation   string `setting:"-" placeholder:"TEXT" help:"What it belongs to."`
	Causation     string `setting:"-" placeholder:"TEXT" help:"What it comes from."`
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
	Stream   string `arg:"" help:"The stream's name."`
	From     *int64 `setting:"-" placeholder:"N" help:"The version to begin with. By default the first, or the last for --backward."`
	Backward bool   `setting:"-" help:"The last event first."`
}

func (c *streamsRead) Run(ctx context.Context, d *connection) error {
	l, err := d.ReadStreamPage(ctx, c.Stream, client.StreamRange{From: c.From, Backward: c.Backward}, c.page(), d.raw())
	return d.showList(eventTable(l.Items), l.Next, err)
}

type streamsClose struct {
	idempotencyFlags
	Stream        string `arg:"" help:"The stream's name."`
	Mode          string `setting:"-" required:"" enum:"archive,tombstone,restart" placeholder:"MODE" help:"What is left: archive, tombstone or restart."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Only if this is the stream's last version. A restart needs it: the version that its snapshot covers."`
	Snapshot      string `setting:"-" placeholder:"JSON" help:"What it comes to, for restart: JSON, or @FILE."`
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
	Follow bool `setting:"-" help:"Go on as events come, until Ctrl-C."`
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
	l, err := d.ReadEventsPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"STREAM", "VERSION", "NAME", "AT", "DATA"}}
	for _, e := range l.Items {
		t.add(e.Stream, number64(e.Version), e.Name, at(e.At), string(e.Data))
	}
	return d.showList(t, l.Next, err)
}

// follow prints events as they come. To be stopped is its end, and no failure.
func (d *connection) follow(ctx context.Context, after string) error {
	lines := json.NewEncoder(d.stdout)
	lines.SetEscapeHTML(false)
	for e, err := range d.Client.Follow(ctx, after) {
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
