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

// Limits of a connection, so that slow or silent clients cannot exhaust the server. A response that
// takes longer by design extends its own deadline with an [http.ResponseController].
const (
	headerWithin   = 5 * time.Second
	requestWithin  = time.Minute
	answerWithin   = time.Minute
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Serve serves requests from a listener until ctx ends, and then shuts down gracefully: /readyz reports that the node
// is stopping, new connections are refused, and requests in flight have the duration drain to finish. Remaining
// requests are aborted, with a warning in the log. Serve closes the listener and returns when the last connection is
// closed. It returns nil unless serving itself failed.
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
		return fault.New(fault.Unavailable, "accepting connections on %s failed", ln.Addr()).Wrap(err)
	case <-ctx.Done():
	}
	a.Stop()
	a.log.Info("stopping", "timeout", drain)
	a.drain(context.WithoutCancel(ctx), srv, drain)
	<-served
	return nil
}

func (a *API) drain(ctx context.Context, srv *http.Server, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		a.log.Warn("aborted requests that took longer than the shutdown timeout", "timeout", within)
	}
	if err != nil {
		_ = srv.Close()
	}
}
