package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAJoinedTransactionWaitsForALock verifies that a joined transaction waits for a lock for as
// long as the user's own session and context allow, and is usable then: the call timeout does not
// apply to it.
func TestAJoinedTransactionWaitsForALock(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(as(t, url, "", "", "call_timeout=500ms")))
	mustAppend(t, hf, "s", stream.Any)
	first, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, err := postgres.Join(hf, first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(t.Context(), one, "s", stream.Any, event("first")); err != nil {
		t.Fatal(err)
	}
	committed := make(chan error, 1)
	time.AfterFunc(1500*time.Millisecond, func() { committed <- first.Commit(t.Context()) })
	two, err := postgres.Join(hf, second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(t.Context(), two, "s", stream.Any, event("second")); err != nil {
		t.Errorf("joined append: %v", err)
	}
	if err := <-committed; err != nil {
		t.Errorf("commit that the append waited for: %v", err)
	}
	if err := second.Commit(t.Context()); err != nil {
		t.Errorf("user's commit: %v", err)
	}
}
