package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type streamsCommand struct {
	Append streamsAppend `cmd:"" help:"Append an event to a stream."`
	Read   streamsRead   `cmd:"" help:"Read a stream."`
	Close  streamsClose  `cmd:"" help:"Close the books of a stream."`
}

type streamsAppend struct {
	doorFlags
	onceFlags
	Stream        string `arg:"" help:"The stream's name."`
	Event         string `arg:"" help:"The event's name."`
	Data          string `setting:"-" placeholder:"JSON" help:"What it says: JSON, or @FILE."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Only if this is the stream's last version; =-1 if there is no stream yet."`
	Correlation   string `setting:"-" placeholder:"TEXT" help:"What it belongs to."`
	Causation     string `setting:"-" placeholder:"TEXT" help:"What it comes from."`
}

// Help is shown by kong.
func (streamsAppend) Help() string {
	return `    holdfast streams append order-7 placed --data '{"cents": 100}' --db sqlite:holdfast.db
    holdfast streams append order-7 paid --expect-version 0 --key-once pay-order-7 --db sqlite:holdfast.db`
}

// Run appends an event.
func (c *streamsAppend) Run(ctx context.Context, p *program, k *kong.Context) error {
	data, err := document("--data", c.Data)
	if err != nil {
		return err
	}
	in := wire.Append{ExpectedVersion: c.ExpectVersion, Events: []wire.NewEvent{{Name: c.Event, Data: data, Correlation: c.Correlation, Causation: c.Causation}}}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		done, err := d.AppendEvents(ctx, c.Stream, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("stream", done.Stream, "last version", number64(done.LastVersion)))
	})
}

type streamsRead struct {
	doorFlags
	pageFlags
	Stream   string `arg:"" help:"The stream's name."`
	From     *int64 `setting:"-" placeholder:"N" help:"The version to begin with. By default the first, or the last for --backward."`
	Backward bool   `setting:"-" help:"The last event first."`
}

// Help is shown by kong.
func (streamsRead) Help() string {
	return `    holdfast streams read order-7 --db sqlite:holdfast.db
    holdfast streams read order-7 --backward --limit 1 -o json --db sqlite:holdfast.db`
}

// Run reads a stream.
func (c *streamsRead) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ReadStreamPage(ctx, c.Stream, client.StreamRange{From: c.From, Backward: c.Backward}, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.showList(raw, eventTable(l.Items), l.Next)
	})
}

type streamsClose struct {
	doorFlags
	onceFlags
	Stream        string `arg:"" help:"The stream's name."`
	Mode          string `setting:"-" required:"" enum:"archive,tombstone,restart" placeholder:"MODE" help:"What is left: archive, tombstone or restart."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Only if this is the stream's last version. A restart needs it: the version that its snapshot covers."`
	Snapshot      string `setting:"-" placeholder:"JSON" help:"What it comes to, for restart: JSON, or @FILE."`
}

// Help is shown by kong.
func (streamsClose) Help() string {
	return `A stream that a reaction has not caught up with is refused:

    holdfast streams close order-7 --mode tombstone --db sqlite:holdfast.db

A restart names the version that its snapshot covers, and is refused if the stream has more:

    holdfast streams close order-7 --mode restart --expect-version 41 --snapshot @state.json --db sqlite:holdfast.db`
}

// Run closes a stream.
func (c *streamsClose) Run(ctx context.Context, p *program, k *kong.Context) error {
	snapshot, err := document("--snapshot", c.Snapshot)
	if err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		done, err := d.CloseStream(ctx, c.Stream, wire.CloseStream{Mode: c.Mode, ExpectedVersion: c.ExpectVersion, Snapshot: snapshot}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("stream", done.Stream, "mode", done.Mode, "last version", number64(done.LastVersion)))
	})
}

type eventsCommand struct {
	doorFlags
	pageFlags
	Follow bool `setting:"-" help:"Go on as events come, until Ctrl-C."`
}

// Help is shown by kong.
func (eventsCommand) Help() string {
	return `The feed has every event of the workspace in one order. Followed as JSON, each event is
a line:

    holdfast events --db sqlite:holdfast.db
    holdfast events --follow -o json --url http://127.0.0.1:7070`
}

// Run reads the feed.
func (c *eventsCommand) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.opened(ctx, p, k, inProcess{feed: true}, func(d *door) error {
		if c.Follow {
			return d.follow(ctx, c.Cursor)
		}
		var raw json.RawMessage
		l, err := d.ReadEventsPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"STREAM", "VERSION", "NAME", "AT", "DATA"}}
		for _, e := range l.Items {
			t.add(e.Stream, number64(e.Version), e.Name, at(e.At), string(e.Data))
		}
		return d.showList(raw, t, l.Next)
	})
}

// follow prints events as they come. To be stopped is its end, and no failure.
func (d *door) follow(ctx context.Context, after string) error {
	lines := json.NewEncoder(d.stdout)
	lines.SetEscapeHTML(false)
	for e, err := range d.Client.Follow(ctx, after) {
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		case err != nil:
			return err
		case d.output == "json":
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
