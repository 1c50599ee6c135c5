package idem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/wire"
)

// notReplayed lists the headers that are not replayed: they belong to the moment or to the connection, or are secrets
// of the client that got the first response.
var notReplayed = []string{
	"Set-Cookie", "Set-Cookie2", "Date", "Content-Length", "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", idempotency.ReplayedHeader, answerHeader,
}

// ofBody lists the headers that describe a body and are dropped together with it.
var ofBody = []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Range", "Content-Disposition"}

// answer is the stored part of a response.
type answer struct {
	Headers  http.Header `json:"headers,omitempty"`
	Body     []byte      `json:"body,omitempty"`
	TooLarge bool        `json:"tooLarge,omitempty"` // the body was not stored
}

// buffer holds a response back until it is recorded. From the point where the response exceeds the limit, it is
// passed through.
type buffer struct {
	w      http.ResponseWriter
	limit  int64
	before http.Header // headers before the handler ran
	header http.Header // headers with the changes of the handler
	sent   http.Header // header at the time when the status was written
	status int
	body   bytes.Buffer
	passed bool // the response exceeded the limit and is passed through
}

func newBuffer(w http.ResponseWriter, limit int64) *buffer {
	return &buffer{w: w, limit: limit, before: w.Header().Clone(), header: w.Header().Clone()}
}

func (b *buffer) Header() http.Header {
	if b.header == nil {
		b.header = make(http.Header)
	}
	return b.header
}

func (b *buffer) WriteHeader(status int) {
	if status < 100 || status > 999 { // panic here, as net/http does, so that the stack trace contains the handler
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if b.status != 0 || status < http.StatusOK { // 1xx statuses precede the response
		return
	}
	b.status, b.sent = status, b.Header().Clone()
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	if b.status == http.StatusNoContent || b.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if !b.passed && int64(b.body.Len())+int64(len(p)) > b.limit {
		b.setContentType(p)
		b.pass()
		b.passed = true
	}
	if b.passed {
		return b.w.Write(p)
	}
	return b.body.Write(p)
}

// Flush flushes a response that is passed through. A response that is held back stays so: the client gets it when it
// is recorded.
func (b *buffer) Flush() {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	if b.passed {
		_ = http.NewResponseController(b.w).Flush() // a writer that cannot flush sends the data later
	}
}

// finish completes the response after the handler has returned.
func (b *buffer) finish() {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	if !b.passed {
		b.setContentType(nil)
	}
	b.header = b.sent
}

// sniffed is the number of bytes that net/http uses to detect a content type.
const sniffed = 512

// setContentType sets the Content-Type as net/http would, so that a replay has the same.
func (b *buffer) setContentType(more []byte) {
	_, set := b.sent["Content-Type"]
	if set || b.sent.Get("Content-Encoding") != "" || b.body.Len()+len(more) == 0 {
		return
	}
	start := bytes.Clone(b.body.Bytes()[:min(sniffed, b.body.Len())])
	start = append(start, more[:min(sniffed, len(more))]...)
	b.sent.Set("Content-Type", http.DetectContentType(start))
}

// send sends the response, unless it was passed through.
func (b *buffer) send() {
	if !b.passed {
		b.pass()
	}
}

// pass sends the headers, the status and the body so far.
func (b *buffer) pass() {
	h := b.w.Header()
	clear(h)
	maps.Copy(h, b.sent)
	b.w.WriteHeader(b.status)
	_, _ = b.w.Write(b.body.Bytes()) // on an error the client is gone, and there is no receiver for a report
}

// stored returns the stored form of the response.
func (b *buffer) stored() []byte {
	a := answer{Body: b.body.Bytes(), TooLarge: b.passed}
	if a.TooLarge {
		a.Body = nil
	}
	a.Headers = replayedHeaders(b.sent, b.before)
	text, err := json.Marshal(a)
	if err != nil { // cannot happen: strings and bytes always marshal
		panic(err)
	}
	return text
}

// replayedHeaders returns the headers that the handler set and that are replayed.
func replayedHeaders(sent, before http.Header) http.Header {
	drop := slices.Clone(notReplayed)
	for _, v := range sent.Values("Connection") {
		for name := range strings.SplitSeq(v, ",") {
			drop = append(drop, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	kept := sent.Clone()
	maps.DeleteFunc(kept, func(name string, v []string) bool {
		was, there := before[name]
		return there && slices.Equal(v, was) || slices.Contains(drop, http.CanonicalHeaderKey(name)) || strings.HasPrefix(name, http.TrailerPrefix)
	})
	return kept
}

// replay sends the stored response, or the reason why it cannot.
func (g *guard) replay(w http.ResponseWriter, r *http.Request, f *idempotency.Flight, q idempotency.Request) {
	var a answer
	err := f.CheckReplay(q)
	if err == nil && !q.Answerless() {
		err = json.Unmarshal(q.Answer, &a)
	}
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	h := w.Header()
	h.Set(idempotency.ReplayedHeader, "true")
	maps.Copy(h, a.Headers)
	why := "lost"
	switch {
	case q.Answerless():
	case a.TooLarge:
		why = "too-large"
	default:
		w.WriteHeader(q.Status)
		_, _ = w.Write(a.Body)
		return
	}
	h.Set(answerHeader, why)
	for _, name := range ofBody {
		h.Del(name)
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuse responds with the problem document of an error. Only the message of a [fault.Error] is meant for a caller.
// Errors of the server's side are logged.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := fault.CodeOf(err).Status()
	if status >= http.StatusInternalServerError && r.Context().Err() == nil { // a disconnected client is not a failure
		g.engine.Log().LogAttrs(r.Context(), slog.LevelWarn, "request failed", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "internal error")
	}
	body, err := json.Marshal(wire.ProblemOf(f, status, ""))
	if err != nil { // cannot happen: a problem document always marshals
		panic(err)
	}
	h := w.Header()
	if after, ok := f.Fields["retryAfter"].(int); ok {
		h.Set("Retry-After", strconv.Itoa(after))
	}
	h.Set("Content-Type", wire.ProblemType)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
