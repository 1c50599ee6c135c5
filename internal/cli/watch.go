package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type watchCommand struct {
	targetFlags
	Topics []string `arg:"" name:"topic" help:"Topics, such as inbox, lifecycle:invoice or run:ID."`
	Since  string   `setting:"-" placeholder:"CURSOR" help:"Print first what has changed since this cursor. Default: now."`
	Once   bool     `setting:"-" help:"Print the present state, and the changes since the cursor, and exit."`
}

// Run prints messages until ctx is cancelled, which is not an error.
func (c *watchCommand) Run(ctx context.Context, to *target) error {
	to.feed = true
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	if c.Once {
		m, err := d.GetLive(ctx, client.Topics(c.Topics...), c.Since, d.raw())
		if err != nil || d.Output == "json" {
			return d.show(nil, err)
		}
		return d.showLive(m)
	}
	return untilCancelled(ctx, d.FollowLive(ctx, c.Since, c.Topics...), d.showLive)
}

// showLive shows each change and each state of a message on one line.
func (d *connection) showLive(m wire.Live) error {
	if d.Output == "json" {
		return d.showLine(m)
	}
	var lines []string
	for _, x := range m.Changes {
		lines = append(lines, fmt.Sprintf("%s  %s %s  %d  %s  %s  %s", at(x.At), x.Kind, cell(x.Subject), x.Version, cell(x.Name), cell(x.Actor), cell(string(x.Data))))
	}
	for _, x := range m.Folded {
		lines = append(lines, fmt.Sprintf("%s  %s %s  %d  %d events", at(m.At), x.Kind, cell(x.Subject), x.Version, x.Events))
	}
	if m.Reset {
		lines = append(lines, at(m.At)+"  more has changed than is shown")
	}
	if m.State != nil {
		text, err := json.Marshal(m.State)
		if err != nil {
			return err
		}
		lines = append(lines, at(m.At)+"  state  "+cell(string(text)))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(d.stdout, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}
