package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/stream"
)

// mailer is the part of the story that follows from the first: a reaction sends
// a mail for each invoice that is closed. Its mail server is busy now and then,
// so that some are tried again. That a mail was sent is written with the
// acknowledgement.
type mailer struct {
	busy atomic.Int64 // tries that failed
}

// part returns the reaction. It follows the history of every invoice.
func (m *mailer) part() holdfast.Part {
	return stream.React("demo-mail", stream.Select{Events: []string{"closed"}, Streams: `^\$entity/invoice/`}, m.send,
		stream.Options{Workspaces: []string{"demo"}, Backoff: stream.Backoff{Kind: stream.Fixed, Base: 20 * time.Millisecond}})
}

func (m *mailer) send(_ context.Context, d *stream.Delivery) error {
	id := strings.TrimPrefix(d.Stream, entities.Stream("invoice", ""))
	run, number, found := strings.Cut(id, "-")
	if !found {
		return holdfast.NonRetryable(errors.New("an invoice's id is a run and a number"))
	}
	if strings.HasSuffix(number, "5") && d.Attempt == 1 {
		m.busy.Add(1)
		return errors.New("the mail server is busy")
	}
	data, err := json.Marshal(map[string]string{"invoice": id, "closedBy": d.Actor})
	if err != nil {
		return err
	}
	d.Commit(func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "mail-"+run, stream.Any, stream.Event{Name: "sent", Data: data})
		return err
	})
	return nil
}

// mailPatience is how long the story waits for its mails.
const mailPatience = time.Minute

// mail waits until there are as many mails as invoices, and counts them.
func (d demo) mail(ctx context.Context, m *mailer) error {
	ctx, cancel := context.WithTimeout(ctx, mailPatience)
	defer cancel()
	var sent []stream.Event
	for len(sent) < demoInvoices {
		var err error
		if sent, err = stream.Read(ctx, d.engine, "mail-"+d.run, 0, 0); err != nil {
			return err
		}
		if len(sent) < demoInvoices {
			if err := clock.Wait(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	each := make(map[string]int)
	for _, e := range sent {
		each[string(e.Data)]++
	}
	d.say("a reaction mailed each closed invoice: %d mails for %d invoices, %d tries failed and were repeated, %d mailed twice\n\n",
		len(sent), len(each), m.busy.Load(), len(sent)-len(each))
	if len(sent) != demoInvoices || len(each) != demoInvoices {
		return fault.New(fault.Internal, "the demo found what must not be: %d mails for %d invoices", len(sent), len(each))
	}
	return nil
}
