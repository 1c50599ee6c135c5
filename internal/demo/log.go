package demo

import (
	"context"
	"log/slog"
	"slices"
)

// expected are the warnings and errors that the demo causes on purpose: a message, and attributes that it has then.
var expected = []struct {
	message string
	with    map[string]string
}{
	{"lease expired", map[string]string{"workspace": Workspace}}, // of killed processes
	{"operation is uncertain and waits for manual resolution", map[string]string{"workspace": Workspace}},
	{"resumed operation did not succeed", map[string]string{"workspace": Workspace, "outcome": "uncertain"}},
	{"reaction blocked on a stream; unblock or reset the stream, or skip the event", map[string]string{"workspace": "default", "stream": abroad}},
}

// Log returns a logger that drops what the demo causes on purpose, and what is neither a warning nor an error, unless
// log is at level debug. Any other warning or error is logged as by log.
func Log(log *slog.Logger) *slog.Logger { return slog.New(quiet{log.Handler(), nil}) }

type quiet struct {
	slog.Handler
	attrs []slog.Attr // of all records
}

// Enabled reports whether records of a level are logged.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug) || level > slog.LevelInfo && q.Handler.Enabled(ctx, level)
}

// Handle logs a record, unless it is expected.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.Handler.Enabled(ctx, slog.LevelDebug) && q.expects(r) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) expects(r slog.Record) bool {
	has := make(map[string]string)
	note := func(a slog.Attr) bool {
		has[a.Key] = a.Value.Resolve().String()
		return true
	}
	for _, a := range q.attrs {
		note(a)
	}
	r.Attrs(note)
	for _, e := range expected {
		same := e.message == r.Message
		for key, value := range e.with {
			same = same && has[key] == value
		}
		if same {
			return true
		}
	}
	return false
}

// WithAttrs returns a handler that adds attributes to all records.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), append(slices.Clip(q.attrs), attrs...)}
}

// WithGroup returns a handler whose records have their attributes in a group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.attrs} }
