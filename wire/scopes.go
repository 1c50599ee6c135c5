package wire

import "encoding/json"

// Scope is a scope as it is now. Where there is none, which only a watcher is told, its
// version is -1 and its state null.
type Scope struct {
	Kind    string          `json:"kind"`
	ID      string          `json:"id"`
	Version int64           `json:"version" doc:"It grows with every change, and is never used again. The ETag is this number in quotes."`
	State   json.RawMessage `json:"state" doc:"An object."`
}

// ChangedScope is a scope behind a change.
type ChangedScope struct {
	Version int64           `json:"version" doc:"-1 where there is no such scope, and that of the deletion where this call has deleted it."`
	State   json.RawMessage `json:"state" doc:"An object; null where there is no such scope any more."`
	Changed bool            `json:"changed" doc:"false: it was so already, and nothing was written."`
}

// IncScope adds to the whole number in a field.
type IncScope struct {
	Field string `json:"field"`
	By    *int64 `json:"by,omitempty" doc:"1 if not set."`
}

// PushScope adds an item to the list in a field.
type PushScope struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value,omitempty" required:"true" doc:"Anything, null too."`
}
