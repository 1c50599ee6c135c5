package wire

import "github.com/holdfast-go/holdfast/fault"

// RefusedBy says who was refused, and by what.
type RefusedBy struct {
	ID        string `json:"id"`
	Version   int64  `json:"version" doc:"The object's version when it refused the write. The refusal comes after that event and before the next."`
	Actor     string `json:"actor" doc:"The caller: an API key, or the actor that a program names; empty if it names none."`
	Node      string `json:"node" doc:"The node that refused the write."`
	RequestID string `json:"requestId" doc:"The id of the HTTP request; empty if there was none."`
	Operation string `json:"operation" doc:"The operation that was in progress. For a holder that had lost its lease, its own operation."`
	Epoch     int64  `json:"epoch" doc:"The epoch of a holder that had lost its lease; otherwise 0."`
	StandsFor int64  `json:"standsFor" doc:"The number of refusals that this one stands for. It is more than 1 only if a workspace has more than 100 refusals per second on a node."`
}

// Refusal is a write that was refused because another one came first or was in progress.
type Refusal struct {
	Stream    string         `json:"stream" doc:"The stream of the object, for example $entity/invoice/17."`
	Action    string         `json:"action" doc:"The step that was fired, or the command: append, put, cancel, start, decide. For a holder that had lost its lease, what it tried: settle, renew."`
	Requester string         `json:"requester"`
	Code      fault.Code     `json:"code"`
	Detail    map[string]any `json:"detail"`
	At        *Time          `json:"at"`
	RefusedBy
}

// Race is a group of refusals that lost to the same operation or event.
type Race struct {
	Stream    string    `json:"stream" doc:"The stream of the object, for example $entity/invoice/17."`
	Operation string    `json:"operation" doc:"The operation that won; empty if the winner is an event without an operation."`
	Winner    *Winner   `json:"winner,omitempty" doc:"The event that won; absent if it is no longer retained."`
	Refused   int64     `json:"refused" doc:"The number of refusals, including those that the listed ones stand for."`
	Refusals  []Refusal `json:"refusals" doc:"Latest first."`
}

// Winner is the event that the refusals of a race lost to.
type Winner struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Actor   string `json:"actor"`
	At      *Time  `json:"at"`
}

// TimelineEntry is an event, a refusal, an effect or an answer. Exactly one of the fields is set.
type TimelineEntry struct {
	Event   *Event          `json:"event,omitempty"`
	Refusal *Refusal        `json:"refusal,omitempty"`
	Effect  *TimelineEffect `json:"effect,omitempty"`
	Answer  *StoredRequest  `json:"answer,omitempty" doc:"A request with an idempotency key. The response to it is the outcome of the operation that the next entry, an event, ended."`
}

// TimelineEffect is an effect of an operation.
type TimelineEffect struct {
	Effect
	Operation string `json:"operation"`
	Epoch     int64  `json:"epoch" doc:"The epoch of the attempt that began the effect last."`
	BegunAt   *Time  `json:"begunAt"`
}
