package wire

import "encoding/json"

// NewBatch is a batch to be.
type NewBatch struct {
	ID        string    `json:"id,omitempty" doc:"Without one it gets one."`
	Wallet    string    `json:"wallet" doc:"What its items are paid from."`
	Handler   string    `json:"handler" doc:"What does the items."`
	Parallel  int64     `json:"parallel,omitempty" doc:"How many items are done at once; 1 if not set."`
	Items     []NewItem `json:"items,omitempty"`
	Open      bool      `json:"open,omitempty" doc:"More items follow, until it is sealed."`
	Attempts  int64     `json:"attempts,omitempty" doc:"How often an item that fails is tried; 3 if not set."`
	MaxDeaths int64     `json:"maxDeaths,omitempty" doc:"How many workers may die on an item; 5 if not set."`
	TimeoutMs Millis    `json:"timeoutMs,omitempty" doc:"How long one try may take; the handler's, or 15 minutes."`
}

// NewItem is an item to be.
type NewItem struct {
	Key   string          `json:"key" doc:"Unique in the batch."`
	Cost  int64           `json:"cost" doc:"In points, 0 or more."`
	Input json.RawMessage `json:"input,omitempty"`
}

// AddItems are more items of a batch that is open.
type AddItems struct {
	Items []NewItem `json:"items"`
}

// AddedItems tells how many were new.
type AddedItems struct {
	Added int64 `json:"added" doc:"Items that it had already, just so, are not added again."`
}

// Batch is a batch as it stands.
type Batch struct {
	ID              string      `json:"id"`
	Status          string      `json:"status" enum:"PENDING,RUNNING,PAUSED,CANCELLING,CANCELLED,COMPLETED"`
	Wallet          string      `json:"wallet"`
	Handler         string      `json:"handler"`
	Parallel        int64       `json:"parallel"`
	Counts          BatchCounts `json:"counts"`
	Charged         int64       `json:"charged" doc:"What went from the wallet."`
	Refunded        int64       `json:"refunded" doc:"What went back, for items given up or cancelled."`
	CancelRequested bool        `json:"cancelRequested"`
	Open            bool        `json:"open" doc:"Items may be added."`
	Error           string      `json:"error,omitempty" doc:"Why its teardown or cleanup does not get on."`
	CreatedAt       *Time       `json:"createdAt"`
	UpdatedAt       *Time       `json:"updatedAt"`
}

// BatchCounts are how many items are in which state: each is in one of the first five,
// and the accepted are some of the succeeded.
type BatchCounts struct {
	Pending   int64 `json:"pending"`
	Running   int64 `json:"running"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Accepted  int64 `json:"accepted"`
}

// BatchItem is an item as it stands.
type BatchItem struct {
	Key          string          `json:"key"`
	State        string          `json:"state" enum:"pending,waiting,running,succeeded,failed,cancelled"`
	Decision     *string         `json:"decision" enum:"accepted,cancelled"`
	Cost         int64           `json:"cost"`
	Attempts     int64           `json:"attempts"`
	LostHandOuts int64           `json:"lostHandOuts" doc:"Hand-outs in a row to workers of whom nothing was heard."`
	Artifacts    string          `json:"artifacts" doc:"The prefix under which it may have put artifacts, or nothing."`
	Output       json.RawMessage `json:"output"`
	Error        string          `json:"error"`
}

// CancelledBatch is the answer to a cancel: CANCELLED, or ACCEPTED while it goes on.
type CancelledBatch struct {
	Result string `json:"result" enum:"CANCELLED,ACCEPTED"`
	Batch  Batch  `json:"batch"`
}

// Finalize accepts items that have succeeded: those named, or all.
type Finalize struct {
	Items *[]string `json:"items,omitempty" doc:"Without it, all; an empty list is none."`
}

// Finalized tells how many were accepted.
type Finalized struct {
	Accepted int64 `json:"accepted"`
}
