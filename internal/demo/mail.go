package demo

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/stream"
)

// mails waits until each closed invoice is mailed, and compares the mails with the operations
// that closed the invoices.
func (d *Demo) mails(ctx context.Context) error {
	var sent []stream.Event
	err := await(ctx, func() (enough bool, err error) {
		sent, err = holdfast.Collect(stream.Read(ctx, d.engine, mailbox(d.run), 0))
		return len(sent) >= len(d.total.closings), err
	})
	if err != nil {
		return err
	}
	mailed := make(map[string]int)
	for _, e := range sent {
		var l letter
		if err := json.Unmarshal(e.Data, &l); err != nil {
			return err
		}
		mailed[l.Operation]++
		if d.total.closings[l.Operation] != l.Invoice || mailed[l.Operation] > 1 {
			d.total.mismatch(l.Invoice, "an unexpected mail was sent")
		}
	}
	d.total.recorded.mails = len(sent)
	d.tell("%d invoices closed in the chapters above: %d mails sent", len(d.total.closings), len(sent))
	return nil
}
