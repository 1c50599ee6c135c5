package cli

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

type auditCommand struct {
	pageFlags
	Actor   string    `setting:"-" placeholder:"ACTOR" help:"Only actions of this actor, such as key:06gt…."`
	Action  string    `setting:"-" placeholder:"ACTION" help:"Only this action, such as key.create."`
	Subject string    `setting:"-" placeholder:"SUBJECT" help:"Only actions on this object, such as handler/mail."`
	Since   time.Time `setting:"-" placeholder:"TIME" help:"Only actions at this time (RFC 3339) or later."`
	Until   time.Time `setting:"-" placeholder:"TIME" help:"Only actions before this time (RFC 3339)."`
}

func (c *auditCommand) Run(ctx context.Context, d *connection) error {
	l, err := d.ListAuditPage(ctx, client.AuditFilter{Actor: c.Actor, Action: c.Action, Subject: c.Subject, Since: c.Since, Until: c.Until}, c.page(), d.raw())
	t := &table{heads: []string{"AT", "ACTION", "SUBJECT", "ACTOR", "BEFORE", "AFTER"}}
	for _, e := range l.Items {
		t.add(at(e.At), e.Action, e.Subject, e.Actor, string(e.Before), string(e.After))
	}
	return d.showList(t, l.Next, err)
}
