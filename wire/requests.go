package wire

import "encoding/json"

// StoredRequest is a request with an idempotency key, and the response that its caller got.
type StoredRequest struct {
	ID        string          `json:"id" doc:"The route and a hash of the idempotency key. The key itself is not stored."`
	Route     string          `json:"route" doc:"The operationId of the route in the OpenAPI document, for example startRun."`
	State     string          `json:"state" enum:"inFlight,answered,operation" doc:"operation means that the response is the outcome of the operation."`
	Status    int             `json:"status" doc:"The HTTP status of the response; 0 if there is none yet, or if it is unknown."`
	Operation string          `json:"operation,omitempty"`
	Subject   string          `json:"subject,omitempty"`
	Response  json.RawMessage `json:"response,omitempty"`
	Withheld  bool            `json:"withheld,omitempty" doc:"The response is not shown, because it proves that its caller holds a lease."`
	At        *Time           `json:"at" doc:"When the request was first received."`
}

// StoredRequests are the requests that were made with one idempotency key.
type StoredRequests struct {
	Requests []StoredRequest `json:"requests"`
}
