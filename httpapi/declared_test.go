package httpapi_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// TestADeclarationWakesThoseWhoServeIt verifies that each change of a handler, lifecycle or reaction wakes those who serve
// them, also the first declaration of a handler. Without it, they would read the declarations up to five seconds later.
func TestADeclarationWakesThoseWhoServeIt(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		woken, end := engine.Of(d.engine).Hub().Wait(store.DeclaredTopic)
		defer end()
		for _, x := range []struct {
			method, path string
			body         any
			status       int
		}{
			{"PUT", "handlers/Tell", wire.PutHandler{Kind: "worker"}, 201},
			{"PUT", "handlers/Tell", wire.PutHandler{Kind: "http", URL: "http://127.0.0.1:1/"}, 200},
			{"PUT", "lifecycles/note", tellConfig, 201},
			{"PUT", "reactions/r", `{"events": ["*"], "handler": "Tell"}`, 201},
			{"DELETE", "reactions/r", nil, 204},
		} {
			d.want(d.ask(x.method, x.path, x.body, nil), x.status, "")
			select {
			case <-woken:
			default:
				t.Errorf("%s %s woke nobody", x.method, x.path)
			}
		}
	})
}
