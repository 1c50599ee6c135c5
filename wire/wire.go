// Package wire is the shapes of the HTTP API: what a server sends and a client
// reads, and the other way round. docs/http.md describes the routes.
//
// JSON, camelCase; times are RFC 3339 in UTC with milliseconds, durations are
// milliseconds in fields that end with Ms, versions and epochs are integers. What
// belongs to the user (data, input, result …) is kept as it came, digit for digit.
package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Time is a time on the wire.
type Time struct{ time.Time }

// At makes one; nil of the zero time.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

const layout = "2006-01-02T15:04:05.000Z07:00"

// MarshalText writes the time in UTC, to the millisecond.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.UTC().Format(layout)), nil }

// UnmarshalText reads RFC 3339.
func (t *Time) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fault.New(fault.Validation, "%q is no time as RFC 3339 writes it", text)
	}
	t.Time = at.UTC()
	return nil
}

// MarshalJSON is there because an embedded time has one of its own.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.UTC().Format(layout) + `"`), nil }

// UnmarshalJSON reads a string; null leaves the time as it is.
func (t *Time) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fault.New(fault.Validation, "a time is a string")
	}
	return t.UnmarshalText([]byte(text))
}

// List is a page of something. Next is the cursor of the page that follows, or null.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"Give it as cursor to read on; null at the end."`
}

// Millis are a duration in milliseconds.
type Millis int64

// Duration is the same as Go has it.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Ms makes milliseconds of a duration.
func Ms(d time.Duration) Millis { return Millis(d.Milliseconds()) }
