package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) batchRoutes() {
	add(a, route{Method: http.MethodGet, Path: "batches", ID: "listBatches", Tag: "batches", Summary: "List the workspace's batches, in the order of their ids.", Roles: readers, Filter: "BatchFilter", More: searches}, listBatches)
	add(a, route{Method: http.MethodPost, Path: "batches", ID: "createBatch", Tag: "batches", Summary: "Create a batch of items paid from a wallet.", Roles: operators, Status: http.StatusCreated, Idempotency: table.InTx, Adds: []quota.Kind{quota.Work, quota.Storage}}, createBatch)
	add(a, route{Method: http.MethodGet, Path: "batches/{id}", ID: "getBatch", Tag: "batches", Summary: "Show a batch.", Roles: readers}, getBatch)
	add(a, route{Method: http.MethodGet, Path: "batches/{id}/items", ID: "listItems", Tag: "batches", Summary: "List a batch's items.", Roles: readers, Filter: "ItemFilter"}, listItems)
	add(a, route{Method: http.MethodPost, Path: "batches/{id}/items", ID: "addItems", Tag: "batches", Summary: "Add items to an open batch.", Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Work, quota.Storage},
		More: "Items that were added before are not added again."}, addItems)
	add(a, route{Method: http.MethodPost, Path: "batches/{id}/seal", ID: "sealBatch", Tag: "batches", Summary: "Seal a batch: no more items can be added.", Roles: operators, Idempotency: table.InTx}, sealBatch)
	add(a, route{Method: http.MethodPost, Path: "batches/{id}/cancel", ID: "cancelBatch", Tag: "batches", Summary: "Cancel a batch. Charges for items that were not accepted are refunded.", Roles: operators, Also: http.StatusAccepted, Idempotency: table.InTx, Frees: true,
		More: "The result is CANCELLED, or ACCEPTED while items in flight are torn down."}, cancelBatch)
	add(a, route{Method: http.MethodPost, Path: "batches/{id}/finalize", ID: "acceptItems", Tag: "batches", Summary: "Accept items of a batch that have succeeded.", Roles: operators, Idempotency: table.InTx, Frees: true,
		More: "Without a list of items, the call accepts all succeeded items."}, acceptItems)
	add(a, route{Method: http.MethodGet, Path: "batches/{id}/events", ID: "readBatchHistory", Tag: "batches", Summary: "Read a batch's events, or follow them until the batch ends.", Roles: readers, Stream: true}, readBatchHistory)
}

func batchOf(b batchengine.Batch) wire.Batch {
	return wire.Batch{ID: b.ID, Status: b.Status, Wallet: b.Wallet, Handler: b.Handler, Parallel: b.MaxConcurrency, Counts: wire.BatchCounts(b.Counts()), Charged: b.Charged,
		Refunded: b.Refunded, CancelRequested: b.CancelRequested, Open: !b.Sealed && !b.Over() && !b.CancelRequested, Error: b.Error,
		CreatedAt: shapes.At(b.CreatedAt), UpdatedAt: shapes.At(b.UpdatedAt), ItemsDeletedAt: shapes.At(b.ItemsDeletedAt)}
}

type listBatchesIn struct {
	paged
	Status   string `query:"status" doc:"List only batches with this status."`
	Handler  string `query:"handler" doc:"List only batches of this handler."`
	Wallet   string `query:"wallet" doc:"List only batches that are paid from this wallet."`
	Backward bool   `query:"backward" doc:"List the batch that was created last first."`
	ranged
}

func listBatches(c *call, in *listBatchesIn) (wire.List[wire.Batch], error) {
	times, err := in.times()
	if err != nil {
		return wire.List[wire.Batch]{}, err
	}
	f := batchengine.Filter{Status: in.Status, Handler: in.Handler, Wallet: in.Wallet, Times: times}
	return search(c, in.paged, func(ctx context.Context, after string, limit int) ([]store.Found[batchengine.Batch], error) {
		return batchengine.List(ctx, c.doer(), f, in.Backward, after, limit)
	}, batchOf, func(b batchengine.Batch) string { return b.ID })
}

type createBatchIn struct{ Body wire.NewBatch }

func (in *createBatchIn) units(*call) (int64, error) { return int64(max(len(in.Body.Items), 1)), nil }

func (in *createBatchIn) repeats(c *call) (bool, error) {
	if in.Body.ID == nil {
		return false, nil
	}
	_, err := batchengine.Get(c.ctx(), c.api.engine, *in.Body.ID)
	return exists(err)
}

func createBatch(c *call, in *createBatchIn) (wire.Batch, error) {
	b := in.Body
	id, err := givenID(b.ID)
	if err != nil {
		return wire.Batch{}, err
	}
	items, err := workOf(b.Items)
	if err != nil {
		return wire.Batch{}, err
	}
	n, ours := batchengine.TemplatesOf(c.api.engine).Of(b.Handler)
	if !ours {
		h, err := c.itemHandler(b.Handler)
		if err != nil {
			return wire.Batch{}, err
		}
		n.Timeout, n.Undo = h.Timeout, b.Undo
	} else if b.Undo && !n.Undo {
		return wire.Batch{}, fault.New(fault.Validation, "handler %q of the program has no undo function: omit undo, or call Kind.Undo in the program", b.Handler).With("pointer", "/undo")
	}
	n.ID, n.Wallet, n.Open, n.Items = id, b.Wallet, b.Open, items
	n.MaxConcurrency, n.Attempts, n.MaxCrashes = cmp.Or(b.Parallel, n.MaxConcurrency), cmp.Or(b.Attempts, n.Attempts), cmp.Or(b.MaxDeaths, n.MaxCrashes)
	n.Timeout, n.Retention = cmp.Or(span(b.TimeoutMs), n.Timeout), cmp.Or(span(b.RetentionMs), n.Retention)
	made, err := batchengine.Create(c.ctx(), c.doer(), n)
	return batchOf(made), err
}

// itemHandler returns the handler of a batch. It refuses an undeclared handler, and one that may not
// repeat an item.
func (c *call) itemHandler(name string) (remotehandler.Handler, error) {
	h, err := remotehandler.Get(c.ctx(), c.doer(), name)
	if fault.CodeOf(err) == fault.NotFound && c.api.declares {
		h, err = c.declareOne(name)
	}
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "handler %q does not exist: declare it first with PUT handlers/%s", name, name).With("pointer", "/handler")
	}
	if err == nil && (h.Safety == "opaque" || h.Safety == "journaled") && h.OnUnknown != "retry" {
		err = fault.New(fault.Validation, "handler %q is %s: an item is retried under the same idempotencyKey if its worker crashes, so its handler must be idempotent or set onUnknown to retry", name, h.Safety).
			With("pointer", "/handler")
	}
	return h, err
}

// declareOne declares a worker handler, in the call's transaction if it has one.
func (c *call) declareOne(name string) (h remotehandler.Handler, err error) {
	if tx, ok := c.doer().(*store.Tx); ok {
		return c.declareWorkers(c.ctx(), tx, name)
	}
	err = c.api.engine.Update(c.ctx(), func(ctx context.Context, tx *store.Tx) error {
		h, err = c.declareWorkers(ctx, tx, name)
		return err
	})
	return h, err
}

func workOf(all []wire.NewItem) ([]batchengine.Work, error) {
	some := make([]batchengine.Work, len(all))
	for i, x := range all {
		if x.Cost == nil {
			return nil, fault.New(fault.Validation, "cost is required: set it to the points that item %q costs, or to 0 if it costs nothing", x.Key).With("pointer", "/items/"+strconv.Itoa(i)+"/cost")
		}
		some[i] = batchengine.Work{Key: x.Key, Cost: *x.Cost, Input: x.Input}
	}
	return some, nil
}

type batchIn struct {
	ID string `path:"id"`
}

func getBatch(c *call, in *batchIn) (wire.Batch, error) {
	b, err := batchengine.Get(c.ctx(), c.doer(), batchengine.PublicID(in.ID))
	return batchOf(b), err
}

type listItemsIn struct {
	ID string `path:"id"`
	paged
	State string `query:"state" doc:"List only items in this state. With it, a page may be short and still have a next one."`
}

func listItems(c *call, in *listItemsIn) (wire.List[wire.BatchItem], error) {
	var none wire.List[wire.BatchItem]
	b, err := batchengine.Get(c.ctx(), c.doer(), batchengine.PublicID(in.ID))
	if err != nil {
		return none, err
	}
	show := func(x batchengine.Item) wire.BatchItem {
		w := wire.BatchItem{Key: x.Key, State: x.State, Cost: x.Cost, Attempts: x.Attempts(), LostHandOuts: x.Lost, Output: x.Output, Error: x.Error}
		if x.Decision != "" {
			w.Decision = &x.Decision
		}
		if len(x.Output) == 0 {
			w.Output = raw("null")
		}
		if b.Artifacts && x.Epoch > 0 {
			w.Artifacts = batchengine.Prefix(c.key.Workspace, b.ID, x.Key)
		}
		return w
	}
	key := func(x batchengine.Item) string { return strconv.FormatInt(x.N, 10) }
	if in.State != "" {
		return search(c, in.paged, func(ctx context.Context, after string, limit int) ([]store.Found[batchengine.Item], error) {
			n, err := numberOf(after)
			if err != nil {
				return nil, err
			}
			return batchengine.SearchItems(ctx, c.doer(), b, n, in.State, limit)
		}, show, key)
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]batchengine.Item, error) {
		n, err := numberOf(after)
		if err != nil {
			return nil, err
		}
		return batchengine.Items(ctx, c.doer(), b.ID, n, "", limit)
	}, show, key)
}

type addItemsIn struct {
	ID   string `path:"id"`
	Body wire.AddItems
}

func (in *addItemsIn) units(*call) (int64, error) { return int64(max(len(in.Body.Items), 1)), nil }

func addItems(c *call, in *addItemsIn) (wire.AddedItems, error) {
	items, err := workOf(in.Body.Items)
	if err != nil {
		return wire.AddedItems{}, err
	}
	n, err := batchengine.Add(c.ctx(), c.doer(), batchengine.PublicID(in.ID), items)
	return wire.AddedItems{Added: n}, err
}

func sealBatch(c *call, in *batchIn) (wire.Batch, error) {
	b, err := batchengine.Seal(c.ctx(), c.doer(), batchengine.PublicID(in.ID), c.actor())
	return batchOf(b), err
}

func cancelBatch(c *call, in *batchIn) (wire.CancelledBatch, error) {
	b, accepted, err := batchengine.Cancel(c.ctx(), c.doer(), batchengine.PublicID(in.ID), c.actor())
	out := wire.CancelledBatch{Result: "CANCELLED", Batch: batchOf(b)}
	if accepted {
		out.Result, c.status = "ACCEPTED", http.StatusAccepted
	}
	return out, err
}

type acceptItemsIn struct {
	ID   string           `path:"id"`
	Body wire.AcceptItems `optional:"true"`
}

func acceptItems(c *call, in *acceptItemsIn) (wire.Accepted, error) {
	var keys []string
	if in.Body.Items != nil {
		keys = append([]string{}, *in.Body.Items...)
	}
	n, err := batchengine.Finalize(c.ctx(), c.doer(), batchengine.PublicID(in.ID), keys, c.actor())
	return wire.Accepted{Accepted: n}, err
}

// readBatchHistory reads the history of a batch, as a page, or as an event stream from its first
// event to its end.
func readBatchHistory(c *call, in *historyRequestIn) (wire.List[wire.Event], error) {
	return c.history(in, batchengine.Stream(batchengine.PublicID(in.ID)), batchengine.ProgressTopic(in.ID), func(ctx context.Context, d store.Doer) (bool, error) {
		b, err := batchengine.Get(ctx, d, batchengine.PublicID(in.ID))
		return b.Over(), err
	})
}

// givenID returns the id that the request gives, or a new one if it gives none. An empty id is an error, so that an unset
// variable does not create a second object.
func givenID(id *string) (string, error) {
	if id == nil {
		return store.NewID().String(), nil
	}
	return *id, strictjson.Within(strictjson.Text("id", *id, events.MaxName), "/id")
}
