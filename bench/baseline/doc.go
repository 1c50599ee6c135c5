// Package baseline is the SQL that a good engineer writes by hand for what
// Holdfast does, so that a benchmark can say what the engine costs or saves.
//
// It writes the same rows to tables with the same columns, keys and indexes,
// of its own: in a schema of PostgreSQL, under the prefix "baseline_" in a file
// of SQLite. Each database is used in two ways, both a [System]:
//
//   - one call is one transaction: on PostgreSQL one statement in one round
//     trip, on SQLite BEGIN IMMEDIATE, two prepared statements and COMMIT;
//   - [Postgres.Coalesced] and [SQLite.Coalesced] run the waiting calls as a
//     group: on PostgreSQL one statement over arrays, on SQLite one
//     transaction. This is what one writes after the first load test.
//
// It leaves out what a program for one purpose can leave out, and is the faster
// for it: no arguments are checked, a refusal does not say what it found, the
// outcome of a call whose response is lost stays unknown, and an error in a
// group is the error of all its callers.
//
//	db, err := baseline.OpenPostgres(ctx, url, "baseline", 8)
//	e, err := db.Transition(ctx, baseline.Move{Lifecycle: "invoice", ID: "42", From: "open", To: "closed"})
package baseline

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrRefused is returned when a condition does not hold: the row is missing, in
// another status, at another version, or exists already. Nothing was written.
var ErrRefused = errors.New("baseline: refused")

// workspace and shard are the same for every row: the program that is compared
// has one tenant.
const (
	shard     = 0
	workspace = "default"
)

// Entity is a thing with a status.
type Entity struct {
	Status    string
	Version   int64
	Data      []byte
	CreatedAt time.Time
	UpdatedAt time.Time
}

// New is an entity to create.
type New struct{ Lifecycle, ID, Status, Data string }

// Move is a guarded transition of an entity.
type Move struct{ Lifecycle, ID, From, To, Event string }

// Append adds one event to a stream whose last version is Want; -1 makes the
// stream.
type Append struct {
	Stream     string
	Want       int64
	Name, Data string
}

// Inc adds to a number in the state of a scope. The field must exist.
type Inc struct {
	Kind, ID, Field string
	By              int64
}

// Task is work to add to a queue, due at once.
type Task struct{ Queue, ID, Input string }

// Leased is a task that a caller has leased.
type Leased struct {
	Queue, ID string
	Epoch     int64
	Until     time.Time
	Input     []byte
}

// LeaseSize is the maximum number of tasks that one call leases.
const LeaseSize = 100

// System is one way to write. It is safe for concurrent use.
type System interface {
	Create(context.Context, New) (Entity, error)
	Transition(context.Context, Move) (Entity, error)
	// Append returns the stream's last version.
	Append(context.Context, Append) (int64, error)
	// Inc returns the new value.
	Inc(context.Context, Inc) (int64, error)
	// PutScope makes a scope, or replaces its state, without an event.
	PutScope(ctx context.Context, kind, id, state string) error
	// AddTask makes a task, with its event. If the task exists, it is refused.
	AddTask(context.Context, Task) error
	// Lease takes up to [LeaseSize] due tasks of a queue, the longest due first.
	Lease(ctx context.Context, queue, holder string, lease time.Duration) ([]Leased, error)
	// Ack ends a leased task with its output and its event, and returns the
	// task's version. A lease that has run out, or is another's, is refused.
	Ack(ctx context.Context, t Leased, output string) (int64, error)
	// PutWallet makes a wallet, or replaces its balance, without an event.
	PutWallet(ctx context.Context, id string, balance int64) error
	Swapper
	Batcher
	Runner
	// Close ends what this system has started: its writers, its pool or its file.
	Close()
}

// AckAller is a system that ends many leased tasks at once. Those whose lease
// is lost stay as they are and are not counted.
type AckAller interface {
	AckAll(ctx context.Context, all []Leased, output string) (acked int, err error)
}

// newID is time-ordered, so that the index on it grows at one end.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
