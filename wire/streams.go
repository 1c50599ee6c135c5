package wire

import "encoding/json"

// Event is an event of a stream.
type Event struct {
	Stream      string          `json:"stream"`
	Version     int64           `json:"version"`
	Position    *string         `json:"position" doc:"Position in the feed, which can be used as a feed cursor; null until it is assigned."`
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
	Actor       string          `json:"actor,omitempty" doc:"Defaults to the API key."`
}

// Append is the request to append events to a stream, all or none.
type Append struct {
	ExpectedVersion *int64     `json:"expectedVersion,omitempty" doc:"Expected last version of the stream; -1 if the stream must not exist. Omit it to accept any version."`
	Events          []NewEvent `json:"events"`
}

// Appended is the stream after an append.
type Appended struct {
	Stream      string  `json:"stream"`
	LastVersion int64   `json:"lastVersion"`
	Events      []Event `json:"events"`
}

// CloseStream is the request to close a stream.
type CloseStream struct {
	Mode            string          `json:"mode" enum:"archive,tombstone,restart"`
	ExpectedVersion *int64          `json:"expectedVersion,omitempty" doc:"Expected last version of the stream; omit it to accept any version. Required for restart."`
	Snapshot        json.RawMessage `json:"snapshot,omitempty" doc:"Required for restart: the state computed from all events up to expectedVersion."`
}

// ClosedStream is the response to a close.
type ClosedStream struct {
	Stream      string `json:"stream"`
	Mode        string `json:"mode"`
	LastVersion int64  `json:"lastVersion"`
}

// Stream is a stream, without the histories. Its events are those from firstVersion to lastVersion.
type Stream struct {
	Name         string `json:"name"`
	State        string `json:"state" enum:"open,closing,closed"`
	Mode         string `json:"mode,omitempty" enum:"archive,tombstone" doc:"How a closed stream was closed."`
	FirstVersion int64  `json:"firstVersion"`
	LastVersion  int64  `json:"lastVersion"`
	Events       int64  `json:"events" doc:"The number of stored events."`
	FirstAt      *Time  `json:"firstAt" doc:"Time of the first stored event."`
	LastAt       *Time  `json:"lastAt" doc:"Time of the last event."`
	LastName     string `json:"lastName" doc:"Name of the last event."`
}

// StreamStatistics is a stream with the counts of its events by name.
type StreamStatistics struct {
	Stream
	Counted int64            `json:"counted" doc:"How many of the newest events were counted, at most 10000."`
	Names   map[string]int64 `json:"names" doc:"The number of counted events by name."`
}

// TruncateStream is the request to delete the events of a stream below a version.
type TruncateStream struct {
	Before   int64           `json:"before" minimum:"1" doc:"The first version to keep; at most the last version."`
	Snapshot json.RawMessage `json:"snapshot,omitempty" doc:"The state computed from all events below before, from which aggregates start. Any JSON value."`
}

// PutReaction registers or changes a reaction.
type PutReaction struct {
	Events       []string `json:"events" doc:"Event names; * for all."`
	Streams      string   `json:"streams,omitempty" doc:"A regular expression (RE2) that stream names must match; omit it for all streams."`
	Source       string   `json:"source,omitempty" enum:"event,history" doc:"Where events come from: user streams (event) or histories (history)."`
	MaxRetries   *int     `json:"maxRetries,omitempty"`
	MaxDeaths    *int     `json:"maxDeaths,omitempty"`
	BlockOnError *bool    `json:"blockOnError,omitempty"`
	Backoff      *Backoff `json:"backoff,omitempty"`
	LeaseMs      Millis   `json:"leaseMs,omitempty"`
	Start        string   `json:"start,omitempty" enum:"beginning,now"`
	Priority     int      `json:"priority,omitempty" doc:"The head start in whole seconds, from -1000 to 1000."`
	Handler      string   `json:"handler,omitempty"`
}

// Backoff is the delay before an event is retried.
type Backoff struct {
	Kind   string `json:"kind" enum:"fixed,linear,exponential"`
	BaseMs Millis `json:"baseMs"`
	MaxMs  Millis `json:"maxMs"`
}

// Reaction is a registered reaction.
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
	Priority     int      `json:"priority" doc:"The head start in whole seconds, from -1000 to 1000."`
	Handler      string   `json:"handler"`
	Program      bool     `json:"program,omitempty" doc:"true if a Go program serves the reaction, so that its streams cannot be claimed manually."`
	CreatedAt    *Time    `json:"createdAt"`
	UpdatedAt    *Time    `json:"updatedAt"`
}

// ClaimLeases is the request to claim streams of a reaction manually.
type ClaimLeases struct {
	By      string `json:"by"`
	Limit   int    `json:"limit,omitempty"`
	LeaseMs Millis `json:"leaseMs,omitempty"`
	WaitMs  Millis `json:"waitMs,omitempty"`
}

// Leases are the streams that were claimed.
type Leases struct {
	Leases []Lease `json:"leases"`
}

// Lease is a claimed stream with its next events.
type Lease struct {
	Stream  string  `json:"stream"`
	Epoch   int64   `json:"epoch"`
	Token   string  `json:"token" doc:"Token that proves that the stream was claimed under this epoch. Required for ack, fail and renew."`
	Until   *Time   `json:"until"`
	Attempt int     `json:"attempt"`
	Events  []Event `json:"events"`
}

// Acks is the request to acknowledge events of several leases.
type Acks struct {
	Acks []Ack `json:"acks"`
}

// Ack gives the version up to which a stream was handled.
type Ack struct {
	Stream  string `json:"stream"`
	Epoch   int64  `json:"epoch"`
	Token   string `json:"token" doc:"Lease token, from the claim."`
	Version int64  `json:"version"`
}

// Acked lists the results of acknowledgments.
type Acked struct {
	Results []AckResult `json:"results"`
}

// AckResult is "acked", or the reason for a refusal.
type AckResult struct {
	Stream    string `json:"stream"`
	Status    string `json:"status" enum:"acked,LEASE_LOST,NOT_DELIVERED"`
	Delivered *int64 `json:"delivered,omitempty" doc:"Set with NOT_DELIVERED: the last version that can be acknowledged under this lease. The lease remains valid."`
}

// FailLease reports that an event could not be handled.
type FailLease struct {
	Stream    string `json:"stream"`
	Epoch     int64  `json:"epoch"`
	Token     string `json:"token" doc:"Lease token, from the claim."`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable,omitempty" doc:"false blocks the stream immediately."`
}

// FailedLease describes how the stream continues after a failure.
type FailedLease struct {
	Blocked   bool  `json:"blocked"`
	Retry     int   `json:"retry"`
	NotBefore *Time `json:"notBefore"`
}

// SnoozeLease gives a stream back until a later time. This does not count as a failure.
type SnoozeLease struct {
	Stream  string `json:"stream"`
	Epoch   int64  `json:"epoch"`
	Token   string `json:"token" doc:"Token of the lease."`
	DelayMs Millis `json:"delayMs" doc:"Delay until the stream is due again, in milliseconds: 1 to 2592000000 (30 days)."`
}

// SnoozedLease says when the events are delivered again.
type SnoozedLease struct {
	NotBefore *Time `json:"notBefore"`
}

// RenewLease extends a lease.
type RenewLease struct {
	Stream  string `json:"stream"`
	Epoch   int64  `json:"epoch"`
	Token   string `json:"token" doc:"Lease token, from the claim."`
	LeaseMs Millis `json:"leaseMs,omitempty"`
}

// Repair selects the streams to repair: by name, or by a filter. An empty body selects all; an empty list of streams is
// sent, and refused.
type Repair struct {
	Streams []string      `json:"streams,omitzero"`
	Filter  *RepairFilter `json:"filter,omitempty"`
}

// RepairFilter selects streams.
type RepairFilter struct {
	Stream  string `json:"stream,omitempty" doc:"A regular expression (RE2) that stream names must match."`
	Source  string `json:"source,omitempty" enum:"event,history"`
	Blocked *bool  `json:"blocked,omitempty"`
}

// Repaired lists the streams that were repaired, and those that were skipped because they are
// leased.
type Repaired struct {
	Streams []string `json:"streams"`
	Held    []string `json:"held"`
	Pending []string `json:"pending" doc:"Streams that are reset when their current lease ends. Until then, renew returns cancelRequested and no longer extends the lease."`
}

// Position is the position of a reaction in a stream.
type Position struct {
	Stream       string `json:"stream"`
	Reaction     string `json:"reaction"`
	Watermark    int64  `json:"watermark" doc:"Last version that the reaction has handled or skipped; -1 if there is none."`
	Due          int64  `json:"due" doc:"Last version that is known to concern the reaction; at most the watermark if nothing is to be handled."`
	Head         int64  `json:"head" doc:"Last version of the stream."`
	Failing      *int64 `json:"failing" doc:"Version of the event that failed; null if none has."`
	Retry        int    `json:"retry"`
	Deaths       int    `json:"deaths"`
	LostHandOuts int    `json:"lostHandOuts" doc:"Number of consecutive hand-outs to workers that never responded."`
	Blocked      bool   `json:"blocked"`
	Error        string `json:"error"`
	LeasedBy     string `json:"leasedBy"`
	LeasedUntil  *Time  `json:"leasedUntil"`
	NotBefore    *Time  `json:"notBefore"`
	// ResetRequested reports whether a reset is pending until the lease ends.
	ResetRequested bool `json:"resetRequested" doc:"true if a reset is pending until the lease ends."`
}
