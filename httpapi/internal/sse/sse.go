// Package sse writes responses of the type text/event-stream.
package sse

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Writer writes server-sent events to a connection.
type Writer struct {
	w   http.ResponseWriter
	out *http.ResponseController
	// patience is how long a write may take.
	patience time.Duration
}

// NewWriter starts the response, or returns nil if the connection cannot be flushed. A write that takes longer than
// patience fails.
func NewWriter(w http.ResponseWriter, patience time.Duration) *Writer {
	l := &Writer{w, http.NewResponseController(w), patience}
	if l.out.SetWriteDeadline(clock.OfMachine().Add(patience)) != nil {
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if l.out.Flush() != nil {
		return nil
	}
	return l
}

// Send sends an event whose data is a document as JSON.
func (l *Writer) Send(id, event string, doc any) error {
	if err := l.write("id: " + id + "\nevent: " + oneLine(event) + "\ndata: "); err != nil {
		return err
	}
	if err := json.NewEncoder(l.w).Encode(doc); err != nil { // without newlines
		return err
	}
	return l.end()
}

// Comment sends a line that clients ignore, which keeps the connection open.
func (l *Writer) Comment(text string) error {
	if err := l.write(": " + text + "\n"); err != nil {
		return err
	}
	return l.end()
}

// write starts a message.
func (l *Writer) write(text string) error {
	if err := l.out.SetWriteDeadline(clock.OfMachine().Add(l.patience)); err != nil {
		return err
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// end ends a message with an empty line.
func (l *Writer) end() error {
	if _, err := io.WriteString(l.w, "\n"); err != nil {
		return err
	}
	return l.out.Flush()
}

// oneLine keeps an event name from injecting lines into the stream.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, s)
}
