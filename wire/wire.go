// Package wire defines the JSON types of the HTTP API, for servers and clients. docs/http.md
// describes the routes.
//
// Names are in camelCase. Times are in RFC 3339 format, in UTC with milliseconds. Durations are
// milliseconds in fields that end with Ms. Versions and epochs are integers. User data (data,
// input, result …) is passed through unchanged, digit for digit.
package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Time is a time in the format of the API.
type Time struct{ time.Time }

const layout = "2006-01-02T15:04:05.000Z07:00"

// MarshalText writes the time in UTC, to the millisecond.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.UTC().Format(layout)), nil }

// UnmarshalText reads RFC 3339.
func (t *Time) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fault.New(fault.Validation, "%q is not a valid RFC 3339 time: use a form such as 2026-01-31T08:30:00Z", text)
	}
	t.Time = at.UTC()
	return nil
}

// MarshalJSON is required because the embedded time.Time has its own.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.UTC().Format(layout) + `"`), nil }

// UnmarshalJSON reads a string. null leaves the time unchanged.
func (t *Time) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fault.New(fault.Validation, "a time must be a JSON string such as \"2026-01-31T08:30:00Z\"")
	}
	return t.UnmarshalText([]byte(text))
}

// List is a page of a list. Next is the cursor of the following page, or null.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"Cursor for the next page; null at the end of the list."`
}

// Millis is a duration in milliseconds.
type Millis int64

// Duration converts m to a [time.Duration].
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Ms converts a duration to milliseconds.
func Ms(d time.Duration) Millis { return Millis(d.Milliseconds()) }
