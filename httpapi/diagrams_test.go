package httpapi_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

func TestALifecycleIsDrawn(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var got wire.Diagram
		d.want(d.ask("GET", "lifecycles/invoice/diagram", nil, &got), 200, "")
		if got.Format != "svg" || !strings.HasPrefix(got.Diagram, "<svg") {
			t.Errorf("got diagram %.80q, want svg", got.Diagram)
		}
		d.want(d.ask("GET", "lifecycles/invoice/diagram?format=mermaid", nil, &got), 200, "")
		if !strings.Contains(got.Diagram, "stateDiagram") {
			t.Errorf("got diagram %.80q, want stateDiagram", got.Diagram)
		}
		resp := d.ask("GET", "lifecycles/invoice/diagram", nil, nil, "Accept", "image/avif,image/svg+xml,*/*;q=0.8")
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(string(text), "<svg") {
			t.Errorf("got status %d %q: %.80q, want an SVG image", resp.StatusCode, resp.Header.Get("Content-Type"), text)
		}
		d.want(d.ask("GET", "lifecycles/invoice/diagram?format=layout", nil, &got), 200, "")
		wantLayout(t, got, "open", "closing", "closed", "void")
		d.want(d.ask("GET", "lifecycles/invoice/diagram?format=png", nil, nil), 400, fault.Validation)
		d.want(d.ask("GET", "lifecycles/nothing/diagram", nil, nil), 404, fault.NotFound)
	}, invoices(nil))
}

// wantLayout checks the coordinates of a diagram with the given nodes: each edge begins and ends at the side of its nodes.
func wantLayout(t *testing.T, got wire.Diagram, nodes ...string) {
	t.Helper()
	if got.Format != "layout" || got.Layout == nil {
		t.Fatalf("got diagram %+v, want a layout", got)
	}
	at := make(map[string]wire.DiagramNode)
	var ids []string
	for _, n := range got.Layout.Nodes {
		at[n.ID], ids = n, append(ids, n.ID)
		if n.X < 0 || n.Y < 0 || n.X+n.Width > got.Layout.Width || n.Y+n.Height > got.Layout.Height || n.Label == "" || n.Kind == "" {
			t.Errorf("got node %+v in %v × %v", n, got.Layout.Width, got.Layout.Height)
		}
	}
	if !slices.Equal(ids, nodes) {
		t.Errorf("got nodes %q, want %q", ids, nodes)
	}
	if len(got.Layout.Edges) == 0 {
		t.Error("got no edges")
	}
	for _, e := range got.Layout.Edges {
		for end, p := range map[string]wire.DiagramPoint{e.From: e.Points[0], e.To: e.Points[len(e.Points)-1]} {
			if n := at[end]; p.X < n.X-1 || p.X > n.X+n.Width+1 || p.Y < n.Y-1 || p.Y > n.Y+n.Height+1 {
				t.Errorf("edge %+v does not meet %+v", e, n)
			}
		}
	}
}

func TestADefinitionIsDrawn(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Mail", `{"kind":"worker"}`, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", chaseJSON, nil), 201, "")
		const path = "workflow-definitions/chase@1/diagram"
		var got wire.Diagram
		d.want(d.ask("GET", path, nil, &got), 200, "")
		if got.Format != "svg" || !strings.HasPrefix(got.Diagram, "<svg") || !strings.Contains(got.Diagram, `data-step="remind"`) {
			t.Errorf("got diagram %.80q, want svg", got.Diagram)
		}
		resp := d.ask("GET", path, nil, nil, "Accept", "image/svg+xml")
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(string(text), "<svg") {
			t.Errorf("got status %d %q: %.80q, want an SVG image", resp.StatusCode, resp.Header.Get("Content-Type"), text)
		}
		d.want(d.ask("GET", path+"?format=mermaid", nil, &got), 200, "")
		const want = "stateDiagram-v2\n    direction LR\n    state \"remind (task)\" as s0\n    state \"enough (condition)\" as s1\n    state \"end\" as s2\n" +
			"    [*] --> s0\n    s0 --> s1\n    s1 --> s2: then\n    s1 --> s0: else\n    s2 --> [*]\n"
		if got.Diagram != want {
			t.Errorf("got diagram %q, want %q", got.Diagram, want)
		}
		d.want(d.ask("GET", path+"?format=layout", nil, &got), 200, "")
		wantLayout(t, got, "remind", "enough", "end")
		d.want(d.ask("GET", path+"?format=png", nil, nil), 400, fault.Validation)
		d.want(d.ask("GET", "workflow-definitions/other@1/diagram", nil, nil), 404, fault.NotFound)
	})
}

// TestALifecyclesDetails verifies that a lifecycle is shown with its origin, its janitor and the linter's warnings.
func TestALifecyclesDetails(t *testing.T) {
	const config = `{"workflow": "note", "owning_module": "m", "initial_status": "open", "status_types": ["open", "busy", "done"],
		"janitor": {"every": "2m", "stuck_after": "90s"},
		"steps": [{"step_id": 1, "step_key": "finish", "status": "open", "successful_claim_state": ["busy", "open"], "successful_state": "done", "action": "Do"}]}`
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var got wire.LifecycleDetails
		d.want(d.ask("GET", "lifecycles/invoice", nil, &got), 200, "")
		if got.Name != "invoice" || got.Origin != "program" || got.Janitor.Kind != "standard" || got.Janitor.StuckAfterMs != 300_000 || got.Warnings == nil {
			t.Errorf("got lifecycle %+v", got)
		}
		d.want(d.ask("PUT", "handlers/Do", `{"kind":"worker"}`, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/note", config, nil), 201, "")
		d.want(d.ask("GET", "lifecycles/note", nil, &got), 200, "")
		if got.Origin != "published" || got.Janitor != (wire.LifecycleJanitor{Kind: "standard", EveryMs: 120_000, StuckAfterMs: 90_000}) || got.Revision != 1 || len(got.Config) == 0 {
			t.Errorf("got lifecycle %+v", got)
		}
		if len(got.Warnings) != 1 || got.Warnings[0].Rule != "W1" { // Do does not declare its safety
			t.Errorf("got warnings %+v, want W1", got.Warnings)
		}
	}, invoices(nil))
}
