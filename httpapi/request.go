package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/observe"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/meter"
)

const requestIDHeader = "X-Request-Id"

// generationHeader has the generation of a database that was restored from a backup ([store.Fence]). A caller that sees
// another one than before may know of things that were lost.
const generationHeader = "Holdfast-Generation"

// goodRequestID matches ids of callers that are safe to write to logs.
var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

type requestIDKey struct{}

// requestID returns the request id in a context.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// guard wraps every handler: it sets the request id, recovers panics, and reports the response to
// the log, the metrics and the trace.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := clock.Now()
		id := r.Header.Get(requestIDHeader)
		if !goodRequestID.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		w.Header().Set(requestIDHeader, id)
		if generation := a.engine.Generation(); generation > 0 {
			w.Header().Set(generationHeader, strconv.FormatInt(generation, 10))
		}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		seen := &observe.Recorder{ResponseWriter: w}
		watched, r := a.watch(r)
		a.metrics.InFlight.Inc()
		a.engine.Hub().Tally.Requests.Add(1)
		defer func() { // also after a broken connection
			a.metrics.InFlight.Dec()
			took := clock.Since(begun)
			a.metrics.Observe(watched.Watch, seen, took)
			if !seen.Streamed() {
				meter.Of(a.engine).Requests.Observe(took - watched.Waited)
			}
			watched.End(id, seen)
			a.log.LogAttrs(r.Context(), slog.LevelDebug, "request", watched.Log(id, seen, took)...)
		}()
		a.recoverPanic(next, seen, r)
	})
}

// recoverPanic turns a panic into a 500 or, if the response has already started, into a broken
// connection, so that a truncated response does not look complete.
func (a *API) recoverPanic(next http.Handler, w *observe.Recorder, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		watched := watchOf(r.Context())
		if p == http.ErrAbortHandler {
			watched.Cut = true
			panic(p)
		}
		watched.Code = fault.Internal
		a.log.Error("request handler panicked", "path", watched.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()), "request", requestID(r.Context()))
		if w.Status != 0 {
			watched.Cut = true
			panic(http.ErrAbortHandler)
		}
		a.refuse(w, watched.Safe(r), fault.New(fault.Internal, "internal error: see the server log for this request id"))
	}()
	next.ServeHTTP(w, r)
}
