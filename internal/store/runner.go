package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Runner runs commands on an open store for the engine. It resolves the partition of each workspace and every
// unknown outcome. Safe for concurrent use.
//
// # Unknown outcomes
//
// The connection can break after the database received a write and before it responded. The write may have been
// applied, may still be applied, or may never be. Reading back does not resolve this: the uncertain transaction
// may commit just after the read. The runner therefore resolves it with a write: it inserts a void event under
// the id of the command. That insert waits for the uncertain transaction. If the id is taken, the command was
// applied, and the result is rebuilt from the event stored under it. If the void event was inserted, the
// command can never be applied, because its own event can no longer be written; it gets a new id and is
// retried.
//
// Rejected: a separate table of ids (1.4 to 1.6 times as much WAL), and the driver's classification of
// retryable errors (it is wrong about COMMIT).
type Runner struct {
	Directory *Directory
	// Wake is called with the topics that a commit wakes. It must not block and is set before the runner is used.
	Wake func(topics []string)
	// Commands counts the commands that write events when they are applied, and Refusals those of them that were refused.
	Commands, Refusals atomic.Int64

	store Store
	base  Store // store without its wrappers

	mu     sync.Mutex
	closed bool
	busy   int           // calls in flight
	idle   chan struct{} // closed when the runner is closed and no call is in flight
}

// NewRunner returns a runner on an open store. A store that wraps another, as in the crash tests, exposes it by
// a method Base.
func NewRunner(s Store, directory *Directory) *Runner {
	p := &Runner{Directory: directory, store: s, base: s, idle: make(chan struct{})}
	if before, ok := s.(interface{ Base() Store }); ok {
		p.base = before.Base()
	}
	directory.registries.fence = FenceOf(p.base)
	return p
}

// Base returns the adapter's store.
func (p *Runner) Base() Store { return p.base }

// Version returns the name and version of the database.
func (p *Runner) Version() string { return p.store.Version() }

// Close waits for calls in flight and closes every connection.
func (p *Runner) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	if first && p.busy == 0 {
		close(p.idle)
	}
	p.mu.Unlock()
	<-p.idle
	if !first {
		return nil
	}
	return p.store.Close()
}

// enter counts a call, and refuses it if the runner is closed.
func (p *Runner) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fault.New(fault.Unavailable, "the engine is closed")
	}
	p.busy++
	return nil
}

func (p *Runner) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.closed && p.busy == 0 {
		close(p.idle)
	}
}

// Completing limits how long a capability reads the fields that a recovered result lacks.
const Completing = 5 * time.Second

// resolveTimeout limits how long an unknown outcome is resolved, if necessary beyond the end of the caller's
// context: a late result is better than an unknown outcome.
const resolveTimeout = 15 * time.Second

// maxAttempts limits how often a write is sent if each response is lost and the write is then found not to be
// applied.
const maxAttempts = 8

// Do runs a command and commits it, by itself or grouped with others.
func (p *Runner) Do(ctx context.Context, c Command) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	_, pair := c.(*Pair)
	for attempt := 1; ; attempt++ {
		err := p.store.Do(ctx, c)
		p.count(c, err)
		if unknown(err) && c.Decl().Idempotent && !pair && attempt < maxAttempts && ctx.Err() == nil {
			continue
		}
		if !unknown(err) || c.Decl().Events == NoEvents {
			p.wake(err, c.Wakes())
			return err
		}
		proof, applied, resolveErr := p.resolveOutcome(ctx, c)
		switch {
		case resolveErr != nil:
			return errors.Join(err, resolveErr)
		case applied:
			c.Recover(proof)
			p.wake(nil, c.Wakes())
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended // the write was not and will not be applied
		}
		if pair {
			return ErrUnpaired
		}
		if attempt == maxAttempts {
			return cut(err)
		}
		c.Renew()
	}
}

// Update runs f in one transaction. If the response to its COMMIT is lost, the first command that it applied
// decides for all, because they commit together. That does not hold for a transaction whose handle the user has
// had: they may have rolled back to a savepoint before that command. Such a transaction writes an event
// last that serves only as its commit proof. It also covers an update without any command of ours.
func (p *Runner) Update(ctx context.Context, f func(context.Context, Conn) error) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	for attempt := 1; ; attempt++ {
		var w *witness
		err := p.store.Update(ctx, func(ctx context.Context, c Conn) error {
			w = &witness{Conn: c, runner: p}
			if err := f(ctx, w); err != nil {
				return err
			}
			return w.prove(ctx)
		})
		if !unknown(err) || w == nil || w.first == nil {
			if w != nil {
				p.wake(err, w.wakes)
			}
			return err
		}
		_, applied, resolveErr := p.resolveOutcome(ctx, w.first)
		if resolveErr != nil {
			return errors.Join(err, resolveErr)
		}
		if applied {
			p.wake(nil, w.wakes)
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		if attempt == maxAttempts {
			return cut(err)
		}
	}
}

// cut returns the error of a write that is known not to be applied because the connection broke on every
// attempt.
func cut(err error) error {
	return fault.New(fault.Unavailable, "the connection to the database broke on every attempt; the write was not applied: try again").
		AsRetryable().Wrap(errors.New(err.Error())) // only the text: the code would say that the outcome is unknown
}

// count counts an attempt of a command.
func (p *Runner) count(c Command, err error) {
	_, pair := c.(*Pair)
	if c.Decl().Events == NoEvents || pair && !c.Applied() { // such a pair is followed by a transaction, which is counted
		return
	}
	p.Commands.Add(1)
	if err == nil && !c.Applied() {
		p.Refusals.Add(1)
	}
}

// wake wakes the topics of a commit.
func (p *Runner) wake(err error, topics []string) {
	if err == nil && len(topics) > 0 && p.Wake != nil {
		p.Wake(topics)
	}
}

func unknown(err error) bool { return fault.CodeOf(err) == fault.OutcomeUnknown }

// resolveOutcome resolves an unknown outcome. It can itself be retried, because it recognizes its own void
// event.
func (p *Runner) resolveOutcome(ctx context.Context, c Command) (m CommitProof, applied bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	verb := voidHistory
	if c.Decl().Events == StreamEvents {
		verb = voidEvent
	}
	for {
		ask := verb.call(c.Partition(), c.ID())
		ask.command.id = NewID()
		err := p.store.Do(ctx, &ask.command)
		if err == nil {
			return ask.result, !ask.result.Void, nil
		}
		if !unknown(err) {
			return m, false, err
		}
	}
}

// witness records the first command that a transaction applied.
type witness struct {
	Conn
	runner *Runner
	first  Command
	wakes  []string
}

func (w *witness) Run(ctx context.Context, c Command) error {
	err := w.Conn.Run(ctx, c)
	w.runner.count(c, err)
	if err == nil && w.first == nil && c.Decl().Events != NoEvents && c.Applied() {
		w.first = c
	}
	if err == nil {
		w.wakes = append(w.wakes, c.Wakes()...)
	}
	return err
}

// Unwrap returns the adapter's transaction.
func (w *witness) Unwrap() Conn { return w.Conn }

// prove writes the commit proof of a transaction whose handle the user has had.
func (w *witness) prove(ctx context.Context) error {
	c, ok := Unwrap(w.Conn).(interface{ Exposed() bool })
	if !ok || !c.Exposed() {
		return nil
	}
	at := Partition{Workspace: WorkspaceOf(ctx)}
	if w.first != nil {
		at = w.first.Partition()
	}
	m := commitProofVerb.Command(at, struct{}{})
	w.first = m
	return w.Conn.Run(ctx, m)
}

// commitProofVerb writes an event whose only meaning is that its transaction committed.
var commitProofVerb = VerbOf[struct{}](Decl{Name: "history.write_commit_proof", Events: HistoryEvents},
	nil,
	ScanValue[int64])

// Unwrap returns the adapter's transaction behind all wrappers.
func Unwrap(c Conn) Conn {
	for {
		u, ok := c.(interface{ Unwrap() Conn })
		if !ok {
			return c
		}
		c = u.Unwrap()
	}
}

// CommitProof is the event that an applied command wrote under its id; if it wrote several, the last.
type CommitProof struct {
	Version int64
	Void    bool // the command can never be applied
	Name    string
	Data    []byte
	At      time.Time
}

var (
	voidEvent   = newVoid("events.void_command")
	voidHistory = newVoid("history.void_command")
)

// newVoid declares a verb that inserts a void event under an id, or returns the event that is already there.
func newVoid(name string) *Verb[ID, CommitProof] {
	return NewVerb(Decl{Name: name, Idempotent: true}, nil,
		func(id ID, a *Args) { a.put("id", IDKind, id) },
		func(m *CommitProof, r Row) error {
			return r.Scan(&m.Version, &m.Void, &m.Name, &m.Data, &m.At)
		})
}
