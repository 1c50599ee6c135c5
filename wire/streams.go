package wire

import "encoding/json"

// Event is one fact.
type Event struct {
	Stream      string          `json:"stream"`
	Version     int64           `json:"version"`
	Position    *string         `json:"position" doc:"Its place in the feed: usable as cursor there; null until it has one."`
	Name        string          `json:"name"`
	Data        json.RawMessage `json:"data"`
	Correlation string          `json:"correlation"`
	Causation   string          `json:"causation"`
	Actor       string          `json:"actor"`
	At          *Time           `json:"at"`
}

// NewEvent is an event to append.
type NewEvent struct {
	Name        string          `json:"name"`
	Data        json.RawMessage `json:"data,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Causation   string          `json:"causation,omitempty"`
	Actor       string          `json:"actor,omitempty" doc:"The key, if none is named."`
}

// Append adds events to a stream, all or none.
type Append struct {
	ExpectedVersion *int64     `json:"expectedVersion,omitempty" doc:"-1: the stream must not exist; n: its last version must be n; absent: any."`
	Events          []NewEvent `json:"events"`
}

// Appended is the stream as it is then.
type Appended struct {
	Stream      string  `json:"stream"`
	LastVersion int64   `json:"lastVersion"`
	Events      []Event `json:"events"`
}

// CloseStream closes the books of a stream.
type CloseStream struct {
	Mode            string          `json:"mode" enum:"archive,tombstone,restart"`
	ExpectedVersion *int64          `json:"expectedVersion,omitempty" doc:"The version that the close covers: n: the stream's last version must be n; absent: any. Required for restart."`
	Snapshot        json.RawMessage `json:"snapshot,omitempty" doc:"For restart, and required there: what the events up to expectedVersion come to."`
}

// ClosedStream is a stream that was closed.
type ClosedStream struct {
	Stream      string `json:"stream"`
	Mode        string `json:"mode"`
	LastVersion int64  `json:"lastVersion"`
}

// PutReaction registers a reaction, or changes one.
type PutReaction struct {
	Events       []string `json:"events" doc:"Names of events; * for all."`
	Streams      string   `json:"streams,omitempty" doc:"RE2; absent: all."`
	Source       string   `json:"source,omitempty" enum:"event,history" doc:"The user's streams, or the histories."`
	MaxRetries   *int     `json:"maxRetries,omitempty"`
	MaxDeaths    *int     `json:"maxDeaths,omitempty"`
	BlockOnError *bool    `json:"blockOnError,omitempty"`
	Backoff      *Backoff `json:"backoff,omitempty"`
	LeaseMs      Millis   `json:"leaseMs,omitempty"`
	Start        string   `json:"start,omitempty" enum:"beginning,now"`
	Priority     int      `json:"priority,omitempty"`
	Handler      string   `json:"handler,omitempty"`
}

// Backoff is the pause before an event is tried again.
type Backoff struct {
	Kind   string `json:"kind" enum:"fixed,linear,exponential"`
	BaseMs Millis `json:"baseMs"`
	MaxMs  Millis `json:"maxMs"`
}

// Reaction is a reaction as it is registered.
type Reaction struct {
	Name         string   `json:"name"`
	Events       []string `json:"events"`
	Streams      string   `json:"streams"`
	Source       string   `json:"source" enum:"event,history"`
	MaxRetries   int      `json:"maxRetries"`
	MaxDeaths    int      `json:"maxDeaths"`
	BlockOnError bool     `json:"blockOnError"`
	Backoff      Backoff  `json:"backoff"`
	LeaseMs      Millis   `json:"leaseMs"`
	Start        string   `json:"start"`
	Priority     int      `json:"priority"`
	Handler      string   `json:"handler"`
	Program      bool     `json:"program,omitempty" doc:"A Go program serves it: it is not claimed by hand."`
	CreatedAt    *Time    `json:"createdAt"`
	UpdatedAt    *Time    `json:"updatedAt"`
}

// TakeLeases claims streams of a reaction by hand.
type TakeLeases struct {
	By      string `json:"by"`
	Limit   int    `json:"limit,omitempty"`
	LeaseMs Millis `json:"leaseMs,omitempty"`
	WaitMs  Millis `json:"waitMs,omitempty"`
}

// Leases are what was claimed.
type Leases struct {
	Leases []Lease `json:"leases"`
}

// Lease is a stream that is held, with what comes next on it.
type Lease struct {
	Stream  string  `json:"stream"`
	Epoch   int64   `json:"epoch"`
	Token   string  `json:"token" doc:"Shows that the stream was claimed under this epoch: ack, fail and renew ask for it."`
	Until   *Time   `json:"until"`
	Attempt int     `json:"attempt"`
	Events  []Event `json:"events"`
}

// Acks acknowledges leases.
type Acks struct {
	Acks []Ack `json:"acks"`
}

// Ack says up to which version a stream was handled.
type Ack struct {
	Stream  string `json:"stream"`
	Epoch   int64  `json:"epoch"`
	Token   string `json:"token" doc:"That of the lease."`
	Version int64  `json:"version"`
}

// Acked is what became of acknowledgements.
type Acked struct {
	Results []AckResult `json:"results"`
}

// AckResult is "acked", or why this one was refused.
type AckResult struct {
	Stream    string `json:"stream"`
	Status    string `json:"status" enum:"acked,LEASE_LOST,NOT_DELIVERED"`
	Delivered *int64 `json:"delivered,omitempty" doc:"With NOT_DELIVERED: the last version that can be acknowledged under this lease, which stands."`
}

// FailLease says that an event could not be handled.
type FailLease struct {
	Stream    string `json:"stream"`
	Epoch     int64  `json:"epoch"`
	Token     string `json:"token" doc:"That of the lease."`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable,omitempty" doc:"false: the stream is blocked at once."`
}

// FailedLease is how a stream goes on.
type FailedLease struct {
	Blocked   bool  `json:"blocked"`
	Retry     int   `json:"retry"`
	NotBefore *Time `json:"notBefore"`
}

// RenewLease extends a lease.
type RenewLease struct {
	Stream  string `json:"stream"`
	Epoch   int64  `json:"epoch"`
	Token   string `json:"token" doc:"That of the lease."`
	LeaseMs Millis `json:"leaseMs,omitempty"`
}

// Repair names the streams that a repair is for: by name, or by a filter; {} is all.
type Repair struct {
	Streams []string      `json:"streams,omitempty"`
	Filter  *RepairFilter `json:"filter,omitempty"`
}

// RepairFilter chooses streams.
type RepairFilter struct {
	Stream  string `json:"stream,omitempty" doc:"RE2"`
	Source  string `json:"source,omitempty" enum:"event,history"`
	Blocked *bool  `json:"blocked,omitempty"`
}

// Repaired is what was touched, and what was left alone because somebody works on it
// at this moment.
type Repaired struct {
	Streams []string `json:"streams"`
	Held    []string `json:"held"`
	Pending []string `json:"pending" doc:"Those that are reset when the lease of who works on them ends; renew then tells cancelRequested, and extends it no more."`
}

// Position is where a reaction stands on a stream.
type Position struct {
	Stream       string `json:"stream"`
	Reaction     string `json:"reaction"`
	Watermark    int64  `json:"watermark" doc:"-1: nothing is handled yet."`
	Head         int64  `json:"head"`
	Retry        int    `json:"retry"`
	Deaths       int    `json:"deaths"`
	LostHandOuts int    `json:"lostHandOuts" doc:"Hand-outs in a row to workers of whom nothing was heard."`
	Blocked      bool   `json:"blocked"`
	Error        string `json:"error"`
	LeasedBy     string `json:"leasedBy"`
	LeasedUntil  *Time  `json:"leasedUntil"`
	NotBefore    *Time  `json:"notBefore"`
	// ResetRequested says that it is reset when the lease ends.
	ResetRequested bool `json:"resetRequested" doc:"It is reset when the lease ends."`
}
