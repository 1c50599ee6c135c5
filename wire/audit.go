package wire

import "encoding/json"

// AuditEntry is an administrative action. Before and After are the object without its secrets; each is omitted if there
// was, or is, none.
type AuditEntry struct {
	ID        string          `json:"id"`
	Action    string          `json:"action" doc:"The kind of object and what was done, for example key.create or reaction.skip."`
	Subject   string          `json:"subject" doc:"The object, for example key/06gt…."`
	Actor     string          `json:"actor" doc:"The API key, or the actor that a program names; empty if it names none."`
	RequestID string          `json:"requestId" doc:"The id of the HTTP request; empty if there was none."`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	At        *Time           `json:"at"`
}
