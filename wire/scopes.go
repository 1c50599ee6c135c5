package wire

import "encoding/json"

// Scope is the current state of a scope. In an event stream, a scope that does not exist has
// version -1 and state null.
type Scope struct {
	Kind    string          `json:"kind"`
	ID      string          `json:"id"`
	Version int64           `json:"version" doc:"Incremented by every change and never reused. The ETag is this number in quotes."`
	State   json.RawMessage `json:"state" doc:"A JSON object."`
}

// ChangedScope is a scope after a change.
type ChangedScope struct {
	Version int64           `json:"version" doc:"-1 if the scope does not exist; the version of the deletion if this call deleted the scope."`
	State   json.RawMessage `json:"state" doc:"A JSON object; null if the scope does not exist."`
	Changed bool            `json:"changed" doc:"false if nothing changed and nothing was written."`
}

// IncScope adds to the integer in a field.
type IncScope struct {
	Field string `json:"field"`
	By    *int64 `json:"by,omitempty" doc:"Amount to add; default 1."`
}

// PushScope appends an item to the list in a field.
type PushScope struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value,omitempty" required:"true" doc:"Any JSON value, including null."`
}

// ScopeKind is a kind of scopes.
type ScopeKind struct {
	Kind string `json:"kind"`
}

// ScopeInfo is a scope in a list, without its state.
type ScopeInfo struct {
	Kind      string `json:"kind"`
	ID        string `json:"id"`
	Version   int64  `json:"version"`
	CreatedAt *Time  `json:"createdAt"`
	UpdatedAt *Time  `json:"updatedAt"`
	ExpiresAt *Time  `json:"expiresAt" doc:"null if the scope does not expire."`
}
