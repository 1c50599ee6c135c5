package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/observe"
	"github.com/holdfast-go/holdfast/internal/clock"
)

const requestIDHeader = "X-Request-Id"

// goodRequestID is what a caller's id may look like: it is written to logs.
var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

type requestIDKey struct{}

// requestID returns the id of the request that a context belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// guard is around every handler: it gives the request its id, keeps a panic from
// the connection, and tells the log, the metrics and the trace what was answered.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := clock.Now()
		id := r.Header.Get(requestIDHeader)
		if !goodRequestID.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		w.Header().Set(requestIDHeader, id)
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		seen := &observe.Recorder{ResponseWriter: w}
		watched, r := a.watch(r)
		a.metrics.InFlight.Inc()
		defer func() { // also where the connection is broken
			a.metrics.InFlight.Dec()
			took := clock.Since(begun)
			a.metrics.Observe(watched.Watch, seen, took)
			watched.End(id, seen)
			a.log.LogAttrs(r.Context(), slog.LevelDebug, "request", watched.Log(id, seen, took)...)
		}()
		a.recovered(next, seen, r)
	})
}

// recovered turns a panic into a 500, or, where the answer has begun already,
// into a broken connection: half an answer must not look whole.
func (a *API) recovered(next http.Handler, w *observe.Recorder, r *http.Request) {
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
		a.log.Error("panic", "path", watched.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()), "requestId", requestID(r.Context()))
		if w.Status != 0 {
			watched.Cut = true
			panic(http.ErrAbortHandler)
		}
		a.refuse(w, watched.Safe(r), fault.New(fault.Internal, "something went wrong here: the log has it under this request's id"))
	}()
	next.ServeHTTP(w, r)
}
