package crash

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// ErrCrashed is returned by every call of a crashed engine. The caller of a crashed process would get no result
// at all.
var ErrCrashed = errors.New("the engine has crashed")

// Wrap returns a database whose stores crash according to the plan.
func Wrap(db store.Database, plan *Plan) store.Database { return &database{db, plan} }

type database struct {
	store.Database
	plan *Plan
}

// Open opens the wrapped database, which ends the crash of an earlier engine.
func (d *database) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := d.Database.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &crashing{Store: s, plan: d.plan}
	d.plan.reopened(c)
	return c, nil
}

// crashing is an open store that crashes. Version and Close reach the wrapped store even after the crash: a
// process that dies frees its connections.
type crashing struct {
	store.Store
	plan *Plan
	dead atomic.Bool
}

var _ store.Store = (*crashing)(nil)

// Base returns the adapter's store.
func (s *crashing) Base() store.Store { return base(s.Store) }

func base(s store.Store) store.Store {
	if before, ok := s.(interface{ Base() store.Store }); ok {
		return before.Base()
	}
	return s
}

func (s *crashing) kill() error {
	s.plan.died(s)
	return ErrCrashed
}

// Aside returns a context whose commands are no points and reach the database even after the crash: they stand for
// what happens outside of the engine, such as the passing of time, or what a test looks up.
func Aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

type asideKey struct{}

// Do runs a command and commits it, unless a fault strikes.
func (s *crashing) Do(ctx context.Context, c store.Command) error {
	if ctx.Value(asideKey{}) != nil {
		return s.Store.Do(ctx, c)
	}
	if s.dead.Load() {
		return ErrCrashed
	}
	if c.Decl().Aside {
		return s.Store.Do(ctx, c)
	}
	f := s.plan.meet("do "+c.Decl().Name, "")
	switch f {
	case Before:
		return s.kill()
	case Lost:
		c.Reset()
		return noResponse(c.Decl().Lane)
	}
	err := s.Store.Do(struckContext(ctx, f), c)
	switch {
	case f == After:
		c.Reset()
		return s.kill()
	case f == Error && err == nil:
		c.Reset() // the result is lost too
		return noResponse(c.Decl().Lane)
	}
	return err
}

// struckContext returns the context of a call, ended if the fault is a cancel.
func struckContext(ctx context.Context, f Fault) context.Context {
	if f != Cancel {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// noResponse returns the error of an adapter that got no response: an unknown outcome for a write, a definite
// failure for anything else.
func noResponse(lane store.Lane) error {
	if lane == store.Write {
		return fault.New(fault.OutcomeUnknown, "injected fault: the response was lost")
	}
	return fault.New(fault.Unavailable, "injected fault: the database did not respond")
}

// Update runs f in one transaction and commits it, unless a fault strikes. A fault inside rolls the transaction
// back even if f ignores it.
func (s *crashing) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	if s.dead.Load() {
		return ErrCrashed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var at Fault // fault at the commit
	err := s.Store.Update(ctx, func(ctx context.Context, c store.Conn) error {
		at = None
		tx := &conn{Conn: c, store: s}
		if err := f(ctx, tx); err != nil {
			return err
		}
		if tx.failed != nil {
			return tx.failed
		}
		at = s.plan.meet("commit", "")
		return s.beforeCommit(at, cancel)
	})
	switch {
	case s.dead.Load():
		return ErrCrashed
	case err != nil:
		return err
	case at == After:
		return s.kill()
	case at == Error:
		return noResponse(store.Write)
	}
	return nil
}

// beforeCommit returns an error to roll the transaction back.
func (s *crashing) beforeCommit(f Fault, cancel context.CancelFunc) error {
	switch f {
	case Before:
		return s.kill()
	case Lost:
		return noResponse(store.Write)
	case Cancel:
		cancel()
	}
	return nil
}

// conn is an open transaction that a fault may end.
type conn struct {
	store.Conn
	store  *crashing
	failed error
}

// Unwrap returns the adapter's transaction.
func (c *conn) Unwrap() store.Conn { return c.Conn }

// Run runs a command inside the transaction, unless a fault strikes. After an Error or a Lost the transaction
// is broken, as if the connection were. The first is permanent; the second is retryable, and the store retries
// by itself.
func (c *conn) Run(ctx context.Context, cmd store.Command) error {
	if c.store.dead.Load() {
		return ErrCrashed
	}
	if c.failed != nil {
		return c.failed
	}
	f := c.store.plan.meet("run "+cmd.Decl().Name, "")
	switch f {
	case Before:
		c.failed = c.store.kill()
		return c.failed
	case Lost:
		c.failed = broken().AsRetryable()
		return c.failed
	}
	err := c.Conn.Run(struckContext(ctx, f), cmd)
	switch {
	case f == After:
		c.failed = c.store.kill()
	case f == Error && err == nil:
		c.failed = broken()
	default:
		return err
	}
	cmd.Reset()
	return c.failed
}

func broken() *fault.Error {
	return fault.New(fault.Unavailable, "injected fault: the connection broke inside the transaction")
}

// OpenDatabase keeps a database open: every Open returns the same store, and closing it does nothing until
// [OpenDatabase.Close]. An engine that crashes in a test leaves nothing in the store that the next one could notice,
// and preparing every statement again takes longer than a test case.
type OpenDatabase struct {
	store.Database

	mu   sync.Mutex
	open store.Store
}

// StayOpen returns a database that stays open.
func StayOpen(db store.Database) *OpenDatabase { return &OpenDatabase{Database: db} }

// Open opens the database the first time and after each Close.
func (k *OpenDatabase) Open(ctx context.Context, o store.Options) (store.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		s, err := k.Database.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		k.open = s
	}
	return unclosedStore{k.open}, nil
}

// Close closes the store. The next Open opens the database again.
func (k *OpenDatabase) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		return nil
	}
	s := k.open
	k.open = nil
	return s.Close()
}

type unclosedStore struct{ store.Store }

func (k unclosedStore) Base() store.Store { return base(k.Store) }
func (unclosedStore) Close() error        { return nil }
