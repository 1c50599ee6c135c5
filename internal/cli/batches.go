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

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

type batchesCommand struct {
	Create   batchesCreate   `cmd:"" help:"Make a batch, from a file of items."`
	Add      batchesAdd      `cmd:"" help:"Add a file of items to a batch that is open."`
	Seal     batchesSeal     `cmd:"" help:"Say that a batch has all its items."`
	List     batchesList     `cmd:"" help:"List the batches of a workspace."`
	Show     batchesShow     `cmd:"" help:"Show a batch."`
	Items    batchesItems    `cmd:"" help:"List the items of a batch."`
	Follow   batchesFollow   `cmd:"" help:"Show how far a batch is, until its end."`
	Finalize batchesFinalize `cmd:"" help:"Accept items that have succeeded."`
	Cancel   batchesCancel   `cmd:"" help:"Cancel a batch, and refund what nobody accepted."`
}

type batchArg struct {
	ID string `arg:"" help:"The batch."`
}

// itemsFile is a file of items, one JSON object a line, or one list.
type itemsFile struct {
	File string `arg:"" optional:"" help:"Items, one a line: {\"key\": \"a\", \"cost\": 10, \"input\": {}}; - reads them from stdin."`
}

// itemPage is how many items are sent at once, and itemBytes how many bytes.
const (
	itemPage  = 1000
	itemBytes = 512 << 10
)

// pages reads the file page by page. A list in one document is read like lines.
func (f itemsFile) pages(each func([]wire.NewItem) error) error {
	in := os.Stdin
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return misuse("the file of items cannot be read: %v", err)
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

// firstLetter looks at what comes, without taking it but for spaces.
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

func (f itemsFile) each(r io.Reader, list bool, each func([]wire.NewItem) error) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if list {
		if _, err := d.Token(); err != nil {
			return misuse("the file of items cannot be read: %v", err)
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
			return misuse("item %d cannot be read: %v: an item is such as {\"key\": \"a\", \"cost\": 10, \"input\": {}}", n, err)
		}
		page, size = append(page, x), size+len(x.Input)+len(x.Key)+64
		if len(page) == itemPage || size > itemBytes {
			if err := each(page); err != nil {
				return err
			}
			page, size = nil, 0
		}
	}
	if list {
		if _, err := d.Token(); err != nil {
			return misuse("the list of items is not whole: it ends without a ]")
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return misuse("there is something behind the list of items")
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
	doorFlags
	onceFlags
	itemsFile
	Wallet    string `setting:"-" required:"" placeholder:"ID" help:"What the items are paid from."`
	Handler   string `setting:"-" required:"" placeholder:"NAME" help:"What does the items."`
	ID        string `setting:"-" name:"id" placeholder:"ID" help:"Its id. By default a new one."`
	Parallel  int64  `setting:"-" default:"1" placeholder:"N" help:"How many items are done at once. By default 1."`
	Attempts  int64  `setting:"-" default:"3" placeholder:"N" help:"How often an item that fails is tried. By default 3."`
	LeaveOpen bool   `setting:"-" help:"Leave it open for more items."`
}

// Help is shown by kong.
func (batchesCreate) Help() string {
	return `Many items are sent in pages. What broke off in the middle goes on with "batches add" and
"batches seal": an item that is there already is not added again.

    holdfast batches create items.jsonl --wallet acme --handler transcribe --parallel 8 --url http://127.0.0.1:7070
    holdfast batches create --id b1 --wallet acme --handler transcribe --leave-open --url http://127.0.0.1:7070`
}

// Run makes a batch.
func (c *batchesCreate) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		in := wire.NewBatch{ID: c.ID, Wallet: c.Wallet, Handler: c.Handler, Parallel: c.Parallel, Attempts: c.Attempts, Open: true}
		b, err := d.CreateBatch(ctx, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		if c.File != "" {
			if err := c.add(ctx, d, b.ID); err != nil {
				return fmt.Errorf("the batch %q is made, and open: %w", b.ID, err)
			}
		}
		switch {
		case !c.LeaveOpen:
			b, err = d.SealBatch(ctx, b.ID, client.Raw(&raw))
		case c.File != "":
			b, err = d.GetBatch(ctx, b.ID, client.Raw(&raw))
		}
		if err != nil {
			return err
		}
		return d.show(raw, batchFacts(b))
	})
}

// add adds the items of a file.
func (f itemsFile) add(ctx context.Context, d *door, id string) error {
	return f.pages(func(page []wire.NewItem) error {
		_, err := d.AddItems(ctx, id, wire.AddItems{Items: page})
		return err
	})
}

type batchesAdd struct {
	doorFlags
	batchArg
	itemsFile
}

// Help is shown by kong.
func (batchesAdd) Help() string {
	return `    holdfast batches add b1 more.jsonl --url http://127.0.0.1:7070`
}

// Run adds items.
func (c *batchesAdd) Run(ctx context.Context, p *program, k *kong.Context) error {
	if c.File == "" {
		return misuse("name a file of items, or - for stdin")
	}
	return c.through(ctx, p, k, func(d *door) error {
		if err := c.add(ctx, d, c.ID); err != nil {
			return err
		}
		return d.showBatch(ctx, c.ID)
	})
}

// showBatch shows a batch as it is now.
func (d *door) showBatch(ctx context.Context, id string) error {
	var raw json.RawMessage
	b, err := d.GetBatch(ctx, id, client.Raw(&raw))
	if err != nil {
		return err
	}
	return d.show(raw, batchFacts(b))
}

type batchesSeal struct {
	doorFlags
	onceFlags
	batchArg
}

// Help is shown by kong.
func (batchesSeal) Help() string {
	return `    holdfast batches seal b1 --url http://127.0.0.1:7070`
}

// Run seals a batch.
func (c *batchesSeal) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		b, err := d.SealBatch(ctx, c.ID, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, batchFacts(b))
	})
}

type batchesList struct {
	doorFlags
	pageFlags
	Status string `setting:"-" placeholder:"STATUS" help:"Only those of this status, such as RUNNING."`
}

// Help is shown by kong.
func (batchesList) Help() string {
	return `    holdfast batches list --status CANCELLING --db sqlite:holdfast.db`
}

// Run lists batches.
func (c *batchesList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListBatchesPage(ctx, c.Status, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"BATCH", "STATUS", "WALLET", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "CHARGED", "REFUNDED", "ERROR"}}
		for _, b := range l.Items {
			n := b.Counts
			t.add(b.ID, b.Status, b.Wallet, number64(n.Pending), number64(n.Running), number64(n.Succeeded), number64(n.Failed), number64(n.Cancelled),
				number64(b.Charged), number64(b.Refunded), b.Error)
		}
		return d.showList(raw, t, l.Next)
	})
}

type batchesShow struct {
	doorFlags
	batchArg
}

// Help is shown by kong.
func (batchesShow) Help() string { return `    holdfast batches show b1 --db sqlite:holdfast.db` }

// Run shows a batch.
func (c *batchesShow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error { return d.showBatch(ctx, c.ID) })
}

type batchesItems struct {
	doorFlags
	pageFlags
	batchArg
	State string `setting:"-" placeholder:"STATE" help:"Only those in this state, such as failed."`
}

// Help is shown by kong.
func (batchesItems) Help() string {
	return `    holdfast batches items b1 --state failed --db sqlite:holdfast.db`
}

// Run lists items.
func (c *batchesItems) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListItemsPage(ctx, c.ID, c.State, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"ITEM", "STATE", "DECISION", "COST", "ATTEMPTS", "OUTPUT", "ERROR"}}
		for _, x := range l.Items {
			decision := ""
			if x.Decision != nil {
				decision = *x.Decision
			}
			t.add(x.Key, x.State, decision, number64(x.Cost), number64(x.Attempts), string(x.Output), x.Error)
		}
		return d.showList(raw, t, l.Next)
	})
}

type batchesFollow struct {
	doorFlags
	batchArg
}

// Help is shown by kong.
func (batchesFollow) Help() string {
	return `It ends with the batch. With -o json it prints each event, one a line:

    holdfast batches follow b1 --url http://127.0.0.1:7070`
}

// Run follows a batch.
func (c *batchesFollow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		for e, err := range d.FollowBatch(ctx, c.ID) {
			if err != nil {
				return err
			}
			if d.output == "json" {
				line, err := json.Marshal(e)
				if err != nil {
					return err
				}
				if err := writeDocument(d.stdout, line); err != nil {
					return err
				}
				continue
			}
			if err := d.progress(e); err != nil {
				return err
			}
		}
		if d.output == "json" {
			return nil
		}
		return d.showBatch(ctx, c.ID)
	})
}

// progress shows how far a batch is. Only what has counts moves the bar; what else happens
// has a line of its own.
func (d *door) progress(e wire.Event) error {
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

// progressBar draws a part of a whole.
func progressBar(part, whole int64) string {
	const width = 30
	n := 0
	if whole > 0 {
		n = int(part * width / whole)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

type batchesFinalize struct {
	doorFlags
	onceFlags
	batchArg
	Items []string `arg:"" optional:"" help:"The keys of items; by default all that have succeeded."`
}

// Help is shown by kong.
func (batchesFinalize) Help() string {
	return `What is accepted is not refunded any more:

    holdfast batches finalize b1 --db sqlite:holdfast.db
    holdfast batches finalize b1 page-1 page-2 --db sqlite:holdfast.db`
}

// Run accepts items.
func (c *batchesFinalize) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		var in wire.Finalize
		if len(c.Items) > 0 {
			in.Items = &c.Items
		}
		x, err := d.FinalizeBatch(ctx, c.ID, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("accepted", number64(x.Accepted)))
	})
}

type batchesCancel struct {
	doorFlags
	onceFlags
	batchArg
	Wait bool `setting:"-" help:"Wait until it is torn down."`
}

// Help is shown by kong.
func (batchesCancel) Help() string {
	return `Nothing of it begins any more once this returns. A server, or a program that does its
items, tears it down:

    holdfast batches cancel b1 --wait --url http://127.0.0.1:7070`
}

// Run cancels a batch.
func (c *batchesCancel) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.CancelBatch(ctx, c.ID, c.options(&raw)...)
		if err != nil {
			return err
		}
		if c.Wait && x.Result != "CANCELLED" {
			for _, err := range d.FollowBatch(ctx, c.ID) {
				if err != nil {
					return err
				}
			}
			b, err := d.GetBatch(ctx, c.ID, client.Raw(&raw))
			if err == nil && b.Status != "CANCELLED" {
				err = fault.New(fault.InvalidTransition, "the batch %q is %s", b.ID, b.Status)
			}
			if err != nil {
				return err
			}
			return d.show(raw, batchFacts(b))
		}
		return d.show(raw, batchFacts(x.Batch, "result", x.Result))
	})
}
