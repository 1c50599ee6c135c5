// Package storetest defines what a database must do to run Holdfast. Every adapter passes the same
// cases, through the same calls that the capabilities make:
//
//	func TestConformance(t *testing.T) { storetest.Run(t, backend) }
//
// In addition, a random walk runs the same commands on every adapter and on a small model, and
// compares each result.
package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// Backend is a database under test.
type Backend struct {
	Name string
	// New returns a database that no other test uses.
	New func(testing.TB) Database
	// Sample, if set, makes one case in Sample run at level test.
	Sample int
}

// Database is one database of a backend, with the user's own access to it.
type Database struct {
	holdfast.Database
	// Begin begins a transaction of the user's own.
	Begin func(testing.TB, *holdfast.Engine) UserTx
	// Raw runs the user's SQL in a transaction of the engine.
	Raw func(context.Context, holdfast.Tx, string) error
}

// UserTx is a transaction that the user has begun.
type UserTx interface {
	Join() (holdfast.Tx, error)
	Exec(sql string) error
	Count(table string) (int, error)
	Commit() error
	Rollback() error
}

// env is the environment of a case: an engine, and a workspace of its own.
type env struct {
	*testing.T
	hf  *holdfast.Engine
	db  Database
	ctx context.Context
}

// Case is one requirement for a database.
type Case struct {
	Name string
	run  func(*env)
}

// Cases returns every case.
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{streamCases, entityCases, scopeCases, scopeEditCases, updateCases, joinCases, workspaceCases} {
		all = append(all, group...)
	}
	return all
}

// Run runs every case on a backend. The cases share a database and run in parallel, each in a
// workspace of its own, as an engine is used.
func Run(t *testing.T, b Backend) {
	db := b.New(t)
	hf := holdfasttest.OpenOn(t, db)
	userTable(t, db, hf)
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if b.Sample > 0 {
				testlevel.Variant(t, b.Sample)
			}
			c.run(&env{T: t, hf: hf, db: db, ctx: freshWorkspace(context.Background())})
		})
	}
}

func userTable(t testing.TB, db Database, hf *holdfast.Engine) {
	t.Helper()
	tx := db.Begin(t, hf)
	if err := tx.Exec(`CREATE TABLE payments (id TEXT NOT NULL PRIMARY KEY, note TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

var workspaces atomic.Int64

func freshWorkspace(ctx context.Context) context.Context {
	return holdfast.InWorkspace(ctx, fmt.Sprintf("case-%d", workspaces.Add(1)))
}
