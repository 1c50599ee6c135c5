package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
)

// readyWithin bounds how long /readyz waits for the database.
const readyWithin = 2 * time.Second

// wireTime is the time format of the API: RFC 3339, UTC, milliseconds.
const wireTime = "2006-01-02T15:04:05.000Z07:00"

// healthz reports that the process is alive. It does not query the database, so that a database
// outage does not restart the process.
func (a *API) healthz(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, http.StatusOK, "application/json", struct {
		Status string `json:"status"`
	}{"ok"})
}

type readiness struct {
	Status       string `json:"status"`
	Database     string `json:"database"`
	Schema       int    `json:"schema"`
	DatabaseTime string `json:"databaseTime"`
	Version      string `json:"version,omitempty"`
}

// ready queries the engine, and checks that leases can be signed: the signing key is read once,
// best before the first claim.
func (a *API) ready(ctx context.Context) (holdfast.Status, error) {
	s, err := a.hf.Status(ctx)
	if err == nil {
		_, err = a.signers.Signer(ctx, a.engine)
	}
	return s, err
}

// readyz reports whether this node should receive requests: the database responds, the janitor has not
// stalled, leases can be signed, and the process is not stopping. Every failure is a 503.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	if a.stopping.Load() {
		writeProblem(w, r, http.StatusServiceUnavailable, fault.New(fault.Unavailable, "this node is stopping: use another node"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	s, err := a.ready(ctx)
	if err != nil {
		a.refuseAs(w, r, http.StatusServiceUnavailable, notReady(err))
		return
	}
	writeJSON(w, r, http.StatusOK, "application/json", readiness{
		Status: "ready", Database: s.Database, Schema: s.Schema,
		DatabaseTime: s.Now.UTC().Format(wireTime), Version: a.version,
	})
}

// notReady gives a context error a code. All other errors have one.
func notReady(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.New(fault.Unavailable, "the database did not respond within %v", readyWithin).Wrap(err)
	}
	return err
}
