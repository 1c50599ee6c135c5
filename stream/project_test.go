package stream_test

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAProjectionKnowsItsWorkspace verifies that apply and clear get the workspace of their events, and that a rebuild
// concerns one workspace.
func TestAProjectionKnowsItsWorkspace(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]string{"sqlite": holdfasttest.SQLite(t), "postgres": holdfasttest.PostgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan string)
			p := stream.Project("p", stream.Select{}, func(ctx context.Context, _ holdfast.Tx, e stream.Event) error {
				got <- "apply " + holdfast.WorkspaceOf(ctx) + " " + e.Name
				return nil
			}, func(ctx context.Context, _ holdfast.Tx) error {
				got <- "clear " + holdfast.WorkspaceOf(ctx)
				return nil
			}, stream.Options{Workspaces: []string{"default", "other"}})
			e := holdfasttest.OpenOn(t, holdfasttest.At(db), p)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = e.Run(ctx) })
			defer running.Wait()
			defer cancel()
			want := func(what string) {
				t.Helper()
				if s := <-got; s != what {
					t.Fatalf("got %q, want %q", s, what)
				}
			}
			for _, w := range []string{"default", "other"} {
				if _, err := stream.Append(holdfast.InWorkspace(ctx, w), e, "s", stream.None, stream.Event{Name: "in-" + w}); err != nil {
					t.Fatal(err)
				}
				want("apply " + w + " in-" + w)
			}
			rebuilt := make(chan error, 1)
			go func() { rebuilt <- p.Rebuild(holdfast.InWorkspace(ctx, "other"), e) }()
			want("clear other")
			if err := <-rebuilt; err != nil {
				t.Fatal(err)
			}
			want("apply other in-other")
		})
	}
}
