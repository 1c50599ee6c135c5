package cli

import (
	"io"
	"log/slog"
	"time"
)

// newLog returns a logger that redacts passwords. The level and the format are valid already.
func newLog(w io.Writer, level, format string) *slog.Logger {
	o := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(redact(v))
		case error:
			a.Value = slog.StringValue(redact(v.Error()))
		case time.Duration: // JSON would have nanoseconds
			a.Value = slog.StringValue(v.String())
		}
		return a
	}}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err == nil {
		o.Level = l
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
