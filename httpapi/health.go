package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
)

// readyWithin is how long /readyz waits for the database.
const readyWithin = 2 * time.Second

// wireTime is how the wire writes times: RFC 3339, UTC, milliseconds.
const wireTime = "2006-01-02T15:04:05.000Z07:00"

// healthz says that the process lives. It asks nobody, so that a database that
// is down does not get the process restarted.
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

// ready asks the engine, and whether what is handed out can be signed: that is read once, and best before somebody claims.
func (a *API) ready(ctx context.Context) (holdfast.Status, error) {
	s, err := a.hf.Status(ctx)
	if err == nil {
		_, err = a.signers.Signer(ctx, a.engine)
	}
	return s, err
}

// readyz says whether work should be sent here: the database answers, and the
// process is not stopping. Whatever the reason, no is a 503.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	if a.stopping.Load() {
		writeProblem(w, r, http.StatusServiceUnavailable, fault.New(fault.Unavailable, "this node is stopping: ask another"))
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

// notReady gives an error of the clock a code. All others have one.
func notReady(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.New(fault.Unavailable, "the database did not answer within %v", readyWithin).Wrap(err)
	}
	return err
}
