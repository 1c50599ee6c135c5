package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) auditRoutes() {
	add(a, route{Method: http.MethodGet, Path: "audit", ID: "listAudit", Tag: "visibility", Summary: "List the workspace's administrative actions, newest first.", Roles: admins, Filter: "AuditFilter"}, listAudit)
}

type auditIn struct {
	Actor   string `query:"actor" doc:"Only actions of this actor, for example key:06gt…."`
	Action  string `query:"action" doc:"Only this action, for example key.create."`
	Subject string `query:"subject" doc:"Only actions on this object, for example handler/mail."`
	Since   string `query:"since" doc:"Only actions at this time (RFC 3339) or later."`
	Until   string `query:"until" doc:"Only actions before this time (RFC 3339)."`
	Format  string `query:"format" arg:"-" doc:"With ndjson, the response has all entries, one per line, instead of a page."`
	paged
}

func (in *auditIn) filter() (f audit.Filter, err error) {
	f = audit.Filter{Actor: in.Actor, Action: in.Action, Subject: in.Subject}
	for _, x := range []struct {
		name, text string
		at         *time.Time
	}{{"since", in.Since, &f.Since}, {"until", in.Until, &f.Until}} {
		if x.text == "" {
			continue
		}
		if *x.at, err = time.Parse(time.RFC3339, x.text); err != nil {
			return f, fault.New(fault.Validation, "%s must be a time such as 2026-11-15T13:31:08Z, got %.80q", x.name, x.text).With("pointer", "/"+x.name)
		}
	}
	for name, text := range map[string]string{"actor": in.Actor, "action": in.Action, "subject": in.Subject} {
		if text != "" {
			if err := strictjson.Text(name, text, 1024); err != nil {
				return f, err
			}
		}
	}
	if in.Format != "" && in.Format != "ndjson" && in.Format != "json" {
		return f, fault.New(fault.Validation, "format must be json or ndjson, got %.80q", in.Format).With("pointer", "/format")
	}
	return f, nil
}

func auditOf(e audit.Entry) wire.AuditEntry {
	return wire.AuditEntry{ID: e.ID, Action: e.Action, Subject: e.Subject, Actor: e.Actor, RequestID: e.Request, Before: e.Before, After: e.After, At: shapes.At(e.At)}
}

func listAudit(c *call, in *auditIn) (wire.List[wire.AuditEntry], error) {
	f, err := in.filter()
	if err != nil {
		return wire.List[wire.AuditEntry]{}, err
	}
	if in.Format == "ndjson" {
		return wire.List[wire.AuditEntry]{}, c.exportAudit(f)
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]audit.Entry, error) {
		return audit.List(ctx, c.doer(), f, after, limit)
	}, auditOf, func(e audit.Entry) string { return e.ID })
}

// exportPage is how many entries an export reads at a time, and exportPatience how long writing them may take.
const (
	exportPage     = 200
	exportPatience = 30 * time.Second
)

// exportAudit writes all entries that the filter selects. Once the response has begun, a failure cuts the connection, so that a
// truncated export does not look complete.
func (c *call) exportAudit(f audit.Filter) error {
	out := http.NewResponseController(c.w)
	for after, begun := "", false; ; begun = true {
		found, err := audit.List(c.ctx(), c.api.engine, f, after, exportPage)
		if err != nil && !begun {
			return err
		}
		if !begun {
			c.done = true
			c.w.Header().Set("Content-Type", "application/x-ndjson")
			c.w.Header().Set("Cache-Control", "no-store")
			c.w.WriteHeader(http.StatusOK)
		}
		_ = out.SetWriteDeadline(clock.OfMachine().Add(exportPatience)) // not every connection has one
		lines := json.NewEncoder(c.w)
		for _, e := range found {
			if err == nil {
				err = lines.Encode(auditOf(e))
			}
			after = e.ID
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if len(found) < exportPage {
			return nil
		}
	}
}
