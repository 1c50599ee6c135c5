//go:build unix

package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

// Stop stops a child process (SIGSTOP) that uses the database of an engine. On SQLite this process holds the write lock
// meanwhile. A child that stopped in a transaction of its own, such as the report of its node, would block all others.
func Stop(t testing.TB, e *holdfast.Engine, c *testkit.Child) {
	t.Helper()
	stop := sync.OnceFunc(c.Stop) // the transaction may be repeated
	if err := e.Update(t.Context(), func(context.Context, holdfast.Tx) error { stop(); return nil }); err != nil {
		t.Fatal(err)
	}
}
