package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// timeFlags select objects by time.
type timeFlags struct {
	Since        time.Time `setting:"-" placeholder:"TIME" help:"List only those created at this time (RFC 3339) or later."`
	Until        time.Time `setting:"-" placeholder:"TIME" help:"List only those created before this time (RFC 3339)."`
	UpdatedSince time.Time `setting:"-" placeholder:"TIME" help:"List only those changed last at this time (RFC 3339) or later."`
	UpdatedUntil time.Time `setting:"-" placeholder:"TIME" help:"List only those changed last before this time (RFC 3339)."`
}

func (f timeFlags) times() client.TimeRange { return client.TimeRange(f) }

type searchCommand struct {
	targetFlags
	Text string `arg:"" help:"Beginning of an id, a key or a name, at least 2 characters."`
	Kind string `setting:"-" placeholder:"KIND" help:"Find only these kinds, separated by commas, such as run,entity."`
}

func (c *searchCommand) Run(ctx context.Context, d *connection) error {
	x, err := d.Search(ctx, c.Text, c.Kind, d.raw())
	t := &table{heads: []string{"KIND", "ID", "IN", "NAME", "STATUS", "EXACT"}}
	for _, m := range x.Matches {
		t.add(m.Kind, m.ID, m.Lifecycle+m.ScopeKind, m.Name, m.Status, yes(m.Exact))
	}
	if err := d.show(t, err); err != nil || len(x.More) == 0 || d.Output == "json" {
		return err
	}
	_, err = fmt.Fprintf(d.stderr, "more matches: %s; search with more text\n", strings.Join(x.More, ", "))
	return err
}
