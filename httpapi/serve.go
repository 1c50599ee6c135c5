package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Limits of a connection, so that slow or silent clients cannot use up the
// server. An answer that takes longer by design lifts its own deadline with an
// [http.ResponseController].
const (
	headerWithin   = 5 * time.Second
	requestWithin  = time.Minute
	answerWithin   = time.Minute
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Serve answers on a listener until ctx ends. Then it stops as a good neighbour
// does: /readyz says so, no new connection is taken, and requests in flight have
// until drain has passed; what is left is cut off, with a warning in the log.
// Serve closes the listener and returns when the last connection is closed: nil,
// unless serving itself failed.
func (a *API) Serve(ctx context.Context, ln net.Listener, drain time.Duration) error {
	srv := &http.Server{
		Handler:           a,
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       requestWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		_ = srv.Close()
		return fault.New(fault.Unavailable, "cannot go on listening on %s", ln.Addr()).Wrap(err)
	case <-ctx.Done():
	}
	a.Stop()
	a.log.Info("stopping", "shutdownTimeout", drain)
	a.drain(context.WithoutCancel(ctx), srv, drain)
	<-served
	return nil
}

func (a *API) drain(ctx context.Context, srv *http.Server, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		a.log.Warn("requests were cut off: they took longer than the shutdown may", "shutdownTimeout", within)
	}
	if err != nil {
		_ = srv.Close()
	}
}
