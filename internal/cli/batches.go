package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

type batchesCommand struct {
	Create   batchesCreate   `cmd:"" help:"Create a batch from a file of items."`
	Add      batchesAdd      `cmd:"" help:"Add items from a file to an open batch."`
	Seal     batchesSeal     `cmd:"" help:"Seal a batch, so that no more items can be added."`
	List     batchesList     `cmd:"" help:"List the batches of a workspace."`
	Show     batchesShow     `cmd:"" help:"Show a batch."`
	Items    batchesItems    `cmd:"" help:"List the items of a batch."`
	Follow   batchesFollow   `cmd:"" help:"Follow the progress of a batch until it ends."`
	Finalize batchesFinalize `cmd:"" help:"Accept items of a batch that have succeeded."`
	Cancel   batchesCancel   `cmd:"" help:"Cancel a batch and refund its unaccepted items."`
}

type batchArg struct {
	ID string `arg:"" help:"Batch id."`
}

// itemsFile is a file of items: one JSON object per line, or one JSON list.
type itemsFile struct {
	File string `arg:"" optional:"" help:"File of items, one per line or as a JSON list: {\"key\": \"a\", \"cost\": 10, \"input\": {}}; - reads stdin."`
}

// A page has at most itemPage items, and at most itemBytes bytes unless it is a single larger item. itemBytes is half
// of what the server accepts as a body, because the size of an item is estimated.
const (
	itemPage   = 1000
	itemBytes  = 512 << 10
	itemSyntax = 64 // the estimated size of an item's cost and JSON syntax
)

// pages reads the file page by page and calls each with every page.
func (f itemsFile) pages(each func([]wire.NewItem) error) error {
	in := os.Stdin
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return misuse("cannot read the items file: %v", err)
		}
		defer file.Close()
		in = file
	}
	r := bufio.NewReader(in)
	if first, err := firstLetter(r); err == nil && first == '[' {
		return f.each(r, true, each)
	}
	return f.each(r, false, each)
}

// firstLetter skips white space and returns the next byte without consuming it.
func firstLetter(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b[0])) {
			return b[0], nil
		}
		if _, err := r.Discard(1); err != nil {
			return 0, err
		}
	}
}

// each decodes the items of a list or of lines, and calls each with every page.
func (f itemsFile) each(r io.Reader, list bool, each func([]wire.NewItem) error) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if list {
		if _, err := d.Token(); err != nil {
			return misuse("cannot read the items file: %v", err)
		}
	}
	var page []wire.NewItem
	size := 0
	for n := 1; !list || d.More(); n++ {
		var x wire.NewItem
		err := d.Decode(&x)
		if errors.Is(err, io.EOF) && !list {
			break
		}
		if err != nil {
			return misuse("cannot read item %d: %v: write each item as {\"key\": \"a\", \"cost\": 10, \"input\": {}}", n, err)
		}
		bytes := len(x.Input) + len(x.Key) + itemSyntax
		if len(page) == itemPage || len(page) > 0 && size+bytes > itemBytes {
			if err := each(page); err != nil {
				return err
			}
			page, size = nil, 0
		}
		page, size = append(page, x), size+bytes
	}
	if list {
		if _, err := d.Token(); err != nil {
			return misuse("the list of items is incomplete: it must end with ]")
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return misuse("the file must not contain anything after the list of items")
		}
	}
	if len(page) == 0 {
		return nil
	}
	return each(page)
}

func batchFacts(b wire.Batch, before ...string) *table {
	c := b.Counts
	return facts(append(before, "batch", b.ID, "status", b.Status, "wallet", b.Wallet, "handler", b.Handler, "parallel", number64(b.Parallel), "open", yes(b.Open),
		"cancel requested", yes(b.CancelRequested), "pending", number64(c.Pending), "running", number64(c.Running), "succeeded", number64(c.Succeeded),
		"accepted", number64(c.Accepted), "failed", number64(c.Failed), "cancelled", number64(c.Cancelled), "charged", number64(b.Charged),
		"refunded", number64(b.Refunded), "error", b.Error)...)
}

type batchesCreate struct {
	idempotencyFlags
	itemsFile
	Wallet    string  `setting:"-" required:"" placeholder:"ID" help:"Wallet that pays for the items."`
	Handler   string  `setting:"-" required:"" placeholder:"NAME" help:"Handler that executes the items."`
	ID        *string `setting:"-" name:"id" placeholder:"ID" help:"Batch id. Default: a new id."`
	Parallel  int64   `setting:"-" default:"1" placeholder:"N" help:"Maximum number of items in flight. Default: 1."`
	Attempts  int64   `setting:"-" default:"3" placeholder:"N" help:"Maximum number of attempts per item. Default: 3."`
	Undo      bool    `setting:"-" help:"Let the handler undo items that were started and then failed or were cancelled."`
	LeaveOpen bool    `setting:"-" help:"Leave the batch open for more items."`
}

func (c *batchesCreate) Run(ctx context.Context, d *connection) error {
	in := wire.NewBatch{ID: c.ID, Wallet: c.Wallet, Handler: c.Handler, Parallel: c.Parallel, Attempts: c.Attempts, Undo: c.Undo, Open: true}
	b, err := d.CreateBatch(ctx, in, c.options(d)...)
	if err != nil {
		return err
	}
	if c.File != "" {
		if err := c.add(ctx, d, b.ID); err != nil {
			return fmt.Errorf("batch %q was created and is open, but not all items were added (to continue, use \"holdfast batches add\"): %w", b.ID, err)
		}
	}
	switch {
	case !c.LeaveOpen:
		b, err = d.SealBatch(ctx, b.ID, d.raw())
	case c.File != "":
		b, err = d.GetBatch(ctx, b.ID, d.raw())
	}
	return d.show(batchFacts(b), err)
}

// add adds the items of the file to a batch.
func (f itemsFile) add(ctx context.Context, d *connection, id string) error {
	return f.pages(func(page []wire.NewItem) error {
		_, err := d.AddItems(ctx, id, wire.AddItems{Items: page})
		return err
	})
}

type batchesAdd struct {
	targetFlags
	batchArg
	itemsFile
}

func (c *batchesAdd) Run(ctx context.Context, to *target) error {
	if c.File == "" {
		return misuse("no items were given: specify an items file, or - for stdin")
	}
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	if err := c.add(ctx, d, c.ID); err != nil {
		return err
	}
	return d.showBatch(ctx, c.ID)
}

// showBatch shows the current state of a batch.
func (d *connection) showBatch(ctx context.Context, id string) error {
	b, err := d.GetBatch(ctx, id, d.raw())
	return d.show(batchFacts(b), err)
}

type batchesSeal struct {
	idempotencyFlags
	batchArg
}

func (c *batchesSeal) Run(ctx context.Context, d *connection) error {
	b, err := d.SealBatch(ctx, c.ID, c.options(d)...)
	return d.show(batchFacts(b), err)
}

type batchesList struct {
	pageFlags
	Status   string `setting:"-" placeholder:"STATUS" help:"List only batches with this status, such as RUNNING."`
	Handler  string `setting:"-" placeholder:"NAME" help:"List only batches of this handler."`
	Wallet   string `setting:"-" placeholder:"ID" help:"List only batches that are paid from this wallet."`
	Backward bool   `setting:"-" help:"List the batch that was created last first."`
	timeFlags
}

func (c *batchesList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListBatchesPage(ctx, client.BatchFilter{Status: c.Status, Handler: c.Handler, Wallet: c.Wallet, Backward: c.Backward, TimeRange: c.times()}, c.page(), d.raw())
	t := &table{heads: []string{"BATCH", "STATUS", "WALLET", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "CHARGED", "REFUNDED", "ERROR"}}
	for _, b := range l.Items {
		n := b.Counts
		t.add(b.ID, b.Status, b.Wallet, number64(n.Pending), number64(n.Running), number64(n.Succeeded), number64(n.Failed), number64(n.Cancelled),
			number64(b.Charged), number64(b.Refunded), b.Error)
	}
	return d.showList(t, l.Next, err)
}

type batchesShow struct {
	targetFlags
	batchArg
}

func (c *batchesShow) Run(ctx context.Context, d *connection) error {
	return d.showBatch(ctx, c.ID)
}

type batchesItems struct {
	pageFlags
	batchArg
	State string `setting:"-" placeholder:"STATE" help:"List only items in this state, such as failed."`
}

func (c *batchesItems) Run(ctx context.Context, d *connection) error {
	l, err := d.ListItemsPage(ctx, c.ID, client.ItemFilter{State: c.State}, c.page(), d.raw())
	t := &table{heads: []string{"ITEM", "STATE", "DECISION", "COST", "ATTEMPTS", "OUTPUT", "ERROR"}}
	for _, x := range l.Items {
		t.add(x.Key, x.State, text(x.Decision), number64(x.Cost), number64(x.Attempts), string(x.Output), x.Error)
	}
	return d.showList(t, l.Next, err)
}

type batchesFollow struct {
	targetFlags
	batchArg
}

func (c *batchesFollow) Run(ctx context.Context, d *connection) error {
	return d.followed(d.FollowBatch(ctx, c.ID), d.progress, func() error { return d.showBatch(ctx, c.ID) })
}

// progress draws the progress bar of a batch. An event without counts is printed on a line of its
// own, except for frequent ones (items were taken, added or accepted) and the end of the batch, which
// is shown afterwards.
func (d *connection) progress(e wire.Event) error {
	var data struct{ Counts *wire.BatchCounts }
	_ = json.Unmarshal(e.Data, &data) // without counts there is nothing to draw
	if data.Counts == nil {
		switch e.Name {
		case "itemsTaken", "itemsAdded", "itemsAccepted", "completed", "cancelled":
			return nil
		}
		_, err := fmt.Fprintf(d.stderr, "\r%-60s\n", e.Name)
		return err
	}
	c := *data.Counts
	ended, total := c.Succeeded+c.Failed+c.Cancelled, c.Pending+c.Running+c.Succeeded+c.Failed+c.Cancelled
	_, err := fmt.Fprintf(d.stderr, "\r%s %d of %d, %d running, %d failed ", progressBar(ended, total), ended, total, c.Running, c.Failed)
	if err == nil && ended == total {
		_, err = fmt.Fprintln(d.stderr)
	}
	return err
}

// progressBar draws the ratio of done to total.
func progressBar(done, total int64) string {
	const width = 30
	n := 0
	if total > 0 {
		n = int(done * width / total)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

type batchesFinalize struct {
	idempotencyFlags
	batchArg
	Items []string `arg:"" optional:"" help:"Item keys. Default: all succeeded items."`
}

func (c *batchesFinalize) Run(ctx context.Context, d *connection) error {
	var x wire.Accepted
	var err error
	if len(c.Items) > 0 {
		x, err = d.AcceptItems(ctx, c.ID, c.Items, c.options(d)...)
	} else {
		x, err = d.AcceptAllItems(ctx, c.ID, c.options(d)...)
	}
	return d.show(facts("accepted", number64(x.Accepted)), err)
}

type batchesCancel struct {
	idempotencyFlags
	batchArg
	Wait bool `setting:"-" help:"Wait until the batch is cleaned up."`
}

func (c *batchesCancel) Run(ctx context.Context, d *connection) error {
	x, err := d.CancelBatch(ctx, c.ID, c.options(d)...)
	if err != nil {
		return err
	}
	if c.Wait && x.Result != "CANCELLED" {
		for _, err := range d.FollowBatch(ctx, c.ID) {
			if err != nil {
				return err
			}
		}
		b, err := d.GetBatch(ctx, c.ID, d.raw())
		if err == nil && b.Status != "CANCELLED" {
			err = fault.New(fault.InvalidTransition, "batch %q was not cancelled: its status is %s", b.ID, b.Status)
		}
		return d.show(batchFacts(b), err)
	}
	return d.show(batchFacts(x.Batch, "result", x.Result), nil)
}
