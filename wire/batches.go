package wire

import "encoding/json"

// NewBatch is the request to create a batch.
type NewBatch struct {
	ID          *string   `json:"id,omitempty" doc:"Generated if omitted."`
	Wallet      string    `json:"wallet" doc:"The wallet that pays for the items."`
	Handler     string    `json:"handler" doc:"The handler that processes the items."`
	Parallel    int64     `json:"parallel,omitempty" doc:"Maximum number of items that run at the same time; default 1."`
	Items       []NewItem `json:"items,omitempty"`
	Open        bool      `json:"open,omitempty" doc:"Leave the batch open, so that items can be added until it is sealed."`
	Attempts    int64     `json:"attempts,omitempty" doc:"How many times a failing item is attempted; default 3."`
	MaxDeaths   int64     `json:"maxDeaths,omitempty" doc:"Number of worker crashes after which an item fails; default 5."`
	Undo        bool      `json:"undo,omitempty" doc:"Whether the handler undoes items that were started and then failed or were cancelled. A handler of a program undoes them if it has an undo function."`
	TimeoutMs   Millis    `json:"timeoutMs,omitempty" doc:"Timeout of one attempt; defaults to the handler's timeout or, if that is not set, to 15 minutes."`
	RetentionMs Millis    `json:"retentionMs,omitempty" doc:"How long the batch keeps its items after it has ended; default: the retention of the kind or the server."`
}

// NewItem is an item of a batch that is being created or extended.
type NewItem struct {
	Key   string          `json:"key" doc:"Unique within the batch."`
	Cost  *int64          `json:"cost" nullable:"false" doc:"Cost in points. Set it to 0 for an item that costs nothing."`
	Input json.RawMessage `json:"input,omitempty"`
}

// AddItems adds items to an open batch.
type AddItems struct {
	Items []NewItem `json:"items"`
}

// AddedItems reports how many items were new.
type AddedItems struct {
	Added int64 `json:"added" doc:"Number of new items; identical items that the batch already has are not added again."`
}

// Batch is the current state of a batch.
type Batch struct {
	ID              string      `json:"id"`
	Status          string      `json:"status" enum:"PENDING,RUNNING,PAUSED,CANCELLING,CANCELLED,COMPLETED"`
	Wallet          string      `json:"wallet"`
	Handler         string      `json:"handler"`
	Parallel        int64       `json:"parallel"`
	Counts          BatchCounts `json:"counts"`
	Charged         int64       `json:"charged" doc:"Number of points charged to the wallet."`
	Refunded        int64       `json:"refunded" doc:"Number of points refunded for failed or cancelled items."`
	CancelRequested bool        `json:"cancelRequested"`
	Open            bool        `json:"open" doc:"Whether items can still be added."`
	Error           string      `json:"error,omitempty" doc:"Why the batch's teardown or cleanup makes no progress."`
	CreatedAt       *Time       `json:"createdAt"`
	UpdatedAt       *Time       `json:"updatedAt"`
	ItemsDeletedAt  *Time       `json:"itemsDeletedAt,omitempty" doc:"When the deletion of the items began, after their retention. The counts and sums of the batch remain."`
}

// BatchCounts is the number of items per state. Each item is counted in one of the first five
// fields; Accepted counts a subset of Succeeded.
type BatchCounts struct {
	Pending   int64 `json:"pending"`
	Running   int64 `json:"running"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Accepted  int64 `json:"accepted"`
}

// BatchItem is the current state of an item.
type BatchItem struct {
	Key          string          `json:"key"`
	State        string          `json:"state" enum:"pending,waiting,running,succeeded,failed,cancelled"`
	Decision     *string         `json:"decision" enum:"accepted,cancelled"`
	Cost         int64           `json:"cost"`
	Attempts     int64           `json:"attempts"`
	LostHandOuts int64           `json:"lostHandOuts" doc:"Number of consecutive hand-outs to workers that never responded."`
	Artifacts    string          `json:"artifacts" doc:"Prefix under which the item may have stored artifacts; empty if none."`
	Output       json.RawMessage `json:"output"`
	Error        string          `json:"error"`
}

// CancelledBatch is the response to a cancel request: the result is CANCELLED, or ACCEPTED while
// items in flight are being torn down.
type CancelledBatch struct {
	Result string `json:"result" enum:"CANCELLED,ACCEPTED"`
	Batch  Batch  `json:"batch"`
}

// AcceptItems accepts succeeded items: the named ones, or all.
type AcceptItems struct {
	Items *[]string `json:"items,omitempty" doc:"Keys of the items to accept; omit to accept all succeeded items. An empty list accepts none."`
}

// Accepted reports how many items were accepted.
type Accepted struct {
	Accepted int64 `json:"accepted"`
}
