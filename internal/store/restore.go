package store

import (
	"sync"

	"github.com/holdfast-go/holdfast/fault"
)

// # Restoring a backup
//
// A restored database has lost what was written after the backup, but nodes, workers and readers remember it. Without
// more, the lost numbers would be given again: two workers would complete a task under the same epoch, and a node would
// write with a registry that no longer exists.
//
// "holdfast migrate --restored" therefore moves the database to a new generation, in one transaction:
//
//   - Numbers that must not come again begin at generation × [GenerationSpan]: the epochs of leases, the versions of scopes and the
//     positions of feeds. A generation is the number of seconds since 2026, so this exceeds everything that was given after
//     the backup, even if the same backup was restored before. Holders from before have an epoch that is not current, so
//     their writes are refused. Revisions of registries, and with them the epochs of reactions, jump by [RevisionJump].
//   - Leases of steps and items that are created later begin at small epochs again. So the key that signs task ids is replaced:
//     the ids that workers have from before are not valid.
//   - The versions of a scope jump with an event of their own ("restored") with the state. The positions that a feed skips are
//     recorded, and a cursor among them is refused.
//   - Versions of streams, entities, runs and batches have no gaps and do not jump.
//
// A node remembers the generation with which it opened the database ([Fence]). If it meets another one, it refuses all calls, and
// Run ends. It looks
//
//   - on PostgreSQL, before it first uses a connection. The move ends all other connections of the database, and a look
//     waits for it, so no connection outlives it unseen. Behind a pooler, whose connections to the server a node does not
//     see, it looks once per second; until then, the registry's revision refuses its writes that have events.
//   - on SQLite, in a writing transaction, 20 times per second, and in each one whether its path still leads to the file that it opened.
//
// Rejected: a generation in each statement (every write would read one more row); new names of tables (the text of
// every statement would depend on the generation); a jump by a fixed number (a second restore of the same backup would
// give the same numbers again).

// GenerationsBegin is the time from which generations count: the beginning of 2026, in seconds since 1970.
const GenerationsBegin = 1767225600

// GenerationSpan is how many numbers a generation has for each second until the next one.
const GenerationSpan = 1 << 20

// RevisionJump returns by how much revisions of registries jump: more than a workspace can have registered since the backup, and another
// number for another restore of it. It is small because the epochs of a reaction begin at a revision shifted by 32 bits, and
// must stay below 2⁵³ after hundreds of restores.
func RevisionJump(generation int64) int64 { return 4096 + generation%4096 }

// ErrNotRestored is the refusal of a database without tables.
var ErrNotRestored = fault.New(fault.NotFound, "the database has no tables of Holdfast: restore the backup first. Nothing was changed")

// ErrClockBefore is the refusal of a clock that cannot be right.
var ErrClockBefore = fault.New(fault.Validation, "the clock is before 2026, so that a restore could not be told from an earlier one: set the clock. Nothing was changed")

// Fence refuses the calls of a store after it has met another generation of its database than at the start.
// Safe for concurrent use.
type Fence struct {
	generation int64 // written before the store is used
	started    bool
	once       sync.Once
	restored   chan struct{}
}

// NewFence returns a fence that refuses nothing yet.
func NewFence() *Fence { return &Fence{restored: make(chan struct{})} }

// Start sets the generation. It is called once, while the store is opened.
func (f *Fence) Start(generation int64) { f.generation, f.started = generation, true }

// Started reports whether the generation is known.
func (f *Fence) Started() bool { return f.started }

// Generation returns the generation of the database when the store was opened: 0 before the first restore.
func (f *Fence) Generation() int64 { return f.generation }

// Meet compares a generation that was read, and refuses all further calls if it is another one.
func (f *Fence) Meet(generation int64) error {
	if f.started && generation != f.generation {
		f.Close()
	}
	return f.Err()
}

// Close refuses all further calls.
func (f *Fence) Close() { f.once.Do(func() { close(f.restored) }) }

// Restored returns a channel that is closed when the store has met another generation.
func (f *Fence) Restored() <-chan struct{} { return f.restored }

// Err returns the refusal, or nil.
func (f *Fence) Err() error {
	select {
	case <-f.restored:
		return fault.New(fault.DatabaseRestored, "the database was restored from a backup after this process opened it: restart the process")
	default:
		return nil
	}
}

// Fenced is implemented by a store with a fence.
type Fenced interface{ Fence() *Fence }

// FenceOf returns the fence of a store, or one that refuses nothing.
func FenceOf(s Store) *Fence {
	if f, ok := s.(Fenced); ok {
		return f.Fence()
	}
	return NewFence()
}
