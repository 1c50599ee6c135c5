package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Runner is an open store as an engine uses it: with the places of its
// workspaces, and with every outcome known. Safe for concurrent use.
//
// # Unknown outcomes
//
// A database can take a write and be cut off before it answers. The write may
// be applied, or be about to be, or never will be. Reading back does not tell:
// the transaction in doubt may commit a moment after the read. So the port asks
// by a write of its own: it inserts a void event under the id of the command.
// That insert waits for the transaction in doubt. If the id is taken, the
// command was applied, and the event under it tells the answer. If the void
// event is in, the command never will be applied, for its own event cannot be
// written any more; it gets a new id and is tried again.
//
// Rejected: a table of ids of its own (1.4 to 1.6 times the log written), and
// the driver's word for what is safe to repeat (it is wrong about COMMIT).
type Runner struct {
	Directory *Directory
	// Wake is called with the topics that a commit wakes; it must not wait.
	// It is set before the port is used.
	Wake func(topics []string)

	store Store
	base  Store

	mu     sync.Mutex
	closed bool
	busy   int           // calls under way
	idle   chan struct{} // closed when the port is, and nothing is under way
}

// NewRunner returns the port of an open store. A store that stands before
// another, as the crash tests' does, tells which by a method Base.
func NewRunner(s Store, places *Directory) *Runner {
	p := &Runner{Directory: places, store: s, base: s, idle: make(chan struct{})}
	if before, ok := s.(interface{ Base() Store }); ok {
		p.base = before.Base()
	}
	return p
}

// Base is the adapter's own store.
func (p *Runner) Base() Store { return p.base }

// Version names the database and its version.
func (p *Runner) Version() string { return p.store.Version() }

// Close waits for what is under way and frees every connection.
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

// enter counts a call, and refuses it where the port is closed.
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

// Completing is how long a capability reads for what a recovered answer lacks.
const Completing = 5 * time.Second

// settling is how long an unknown outcome is asked for, beyond the end of the
// caller's context if need be: a caller would rather wait for an answer than
// have none.
const settling = 15 * time.Second

// maxAttempts is how often a write is sent whose answer is lost each time, and which
// is then found not to have been applied.
const maxAttempts = 8

// Do runs a command and commits it, alone or with others.
func (p *Runner) Do(ctx context.Context, c Command) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	for try := 1; ; try++ {
		err := p.store.Do(ctx, c)
		if unknown(err) && c.Decl().Idempotent && try < maxAttempts && ctx.Err() == nil {
			continue
		}
		if !unknown(err) || c.Decl().Events == NoEvents {
			p.woken(err, c.Wakes())
			return err
		}
		mark, applied, asked := p.settle(ctx, c)
		switch {
		case asked != nil:
			return errors.Join(err, asked)
		case applied:
			c.Recover(mark)
			p.woken(nil, c.Wakes())
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended // and nothing was applied, nor will be
		}
		if try == maxAttempts {
			return cut(err)
		}
		c.Renew()
	}
}

// Update runs f in one transaction. Where the answer to its COMMIT is lost, the
// first command that it applied tells for all: they are in or out together. In a
// transaction that the user has had in their own hands it need not be: they may
// have gone back behind it. There a mark is written last, which tells also of an
// update that applied nothing of ours.
func (p *Runner) Update(ctx context.Context, f func(context.Context, Conn) error) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	for try := 1; ; try++ {
		var w *witness
		err := p.store.Update(ctx, func(ctx context.Context, c Conn) error {
			w = &witness{Conn: c}
			if err := f(ctx, w); err != nil {
				return err
			}
			return w.prove(ctx)
		})
		if !unknown(err) || w == nil || w.first == nil {
			if w != nil {
				p.woken(err, w.wakes)
			}
			return err
		}
		_, applied, asked := p.settle(ctx, w.first)
		if asked != nil {
			return errors.Join(err, asked)
		}
		if applied {
			p.woken(nil, w.wakes)
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		if try == maxAttempts {
			return cut(err)
		}
	}
}

// cut is the error of a write that is known not to be applied, because the
// connection was cut each time it was sent.
func cut(err error) error {
	return fault.New(fault.Unavailable, "the connection to the database was cut each time the write was sent; it is not applied").
		Repeatable().Wrap(errors.New(err.Error())) // only its text: this outcome is known
}

// woken tells whom a commit wakes.
func (p *Runner) woken(err error, topics []string) {
	if err == nil && len(topics) > 0 && p.Wake != nil {
		p.Wake(topics)
	}
}

func unknown(err error) bool { return fault.CodeOf(err) == fault.OutcomeUnknown }

// settle makes an unknown outcome known. It may itself be repeated without harm,
// because a void event is recognised.
func (p *Runner) settle(ctx context.Context, c Command) (m CommitProof, applied bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	verb := voidHistory
	if c.Decl().Events == StreamEvents {
		verb = voidEvent
	}
	for {
		ask := &command[ID, CommitProof]{verb: verb, at: c.Partition(), id: NewID(), args: c.ID()}
		err := p.store.Do(ctx, ask)
		if err == nil {
			return ask.out, !ask.out.Void, nil
		}
		if !unknown(err) {
			return m, false, err
		}
	}
}

// witness remembers the first command that a transaction applied.
type witness struct {
	Conn
	first Command
	wakes []string
}

func (w *witness) Run(ctx context.Context, c Command) error {
	err := w.Conn.Run(ctx, c)
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

// prove writes what tells of a transaction that the user has had in their own
// hands.
func (w *witness) prove(ctx context.Context) error {
	c, ok := Unwrap(w.Conn).(interface{ Exposed() bool })
	if !ok || !c.Exposed() {
		return nil
	}
	at := Partition{Workspace: WorkspaceOf(ctx)}
	if w.first != nil {
		at = w.first.Partition()
	}
	m := &command[struct{}, int64]{verb: commitProofVerb, at: at, id: NewID()}
	w.first = m
	return w.Conn.Run(ctx, m)
}

// commitProofVerb writes an event that says no more than that a transaction committed.
var commitProofVerb = VerbOf[struct{}](Decl{Name: "history.mark", Events: HistoryEvents},
	nil,
	ScanValue[int64])

// Unwrap returns the adapter's own transaction under what stands around it.
func Unwrap(c Conn) Conn {
	for {
		u, ok := c.(interface{ Unwrap() Conn })
		if !ok {
			return c
		}
		c = u.Unwrap()
	}
}

// CommitProof is the event that an applied command wrote under its id: of several,
// the last.
type CommitProof struct {
	Version int64
	Void    bool // it says that the command never will be applied
	Name    string
	Data    []byte
	At      time.Time
}

var (
	voidEvent   = newVoid("events.void")
	voidHistory = newVoid("history.void")
)

// newVoid declares a verb that inserts a void event under an id, or tells the
// event that is there.
func newVoid(name string) *Verb[ID, CommitProof] {
	return NewVerb(Decl{Name: name, Idempotent: true}, nil,
		func(id ID, a *Args) { a.put("id", IDKind, id) },
		func(m *CommitProof, r Row) error {
			return r.Scan(&m.Version, &m.Void, &m.Name, &m.Data, &m.At)
		})
}
