package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

var errStop = errors.New("stop")

// writeAll runs a verb of each kind on a doer.
func (e *env) writeAll(ctx context.Context, d holdfast.Doer) error {
	if _, err := stream.Append(ctx, d, "s", stream.None, stream.Event{Name: "a"}); err != nil {
		return err
	}
	if _, err := entities.Create(ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "open"}); err != nil {
		return err
	}
	if _, err := entities.Transition(ctx, store.DoerOf(d), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "closed", Event: "moved"}); err != nil {
		return err
	}
	if _, err := scopestore.Put(ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "user", ID: "u", State: []byte(`{"n":1}`)}); err != nil {
		return err
	}
	_, err := Inc(ctx, d, IncArgs{Kind: "user", ID: "u", Field: "n", By: 1})
	return err
}

// wroteAll checks that the writes of writeAll exist; wroteNone that they do not.
func (e *env) wroteAll() {
	e.Helper()
	e.equal("stream", e.names("s"), []string{"a"})
	e.equal("entity", e.entity("i").Status, "closed")
	e.equal("entity's history", e.names(entities.Stream("invoice", "i")), []string{"created", "moved"})
	e.sameJSON("scope", e.scope("u").State, []byte(`{"n":2}`))
	e.equal("scope's history", e.names(scopestore.Stream("user", "u")), []string{"put", "inc"})
}

func (e *env) wroteNone() {
	e.Helper()
	e.equal("stream", e.names("s"), []string{})
	_, err := entities.Get(e.ctx, engine.Of(e.hf), "invoice", "i")
	e.refused(err, fault.NotFound)
	_, err = scopestore.Get(e.ctx, engine.Of(e.hf), "user", "u")
	e.refused(err, fault.NotFound)
	e.equal("entity's history", e.names(entities.Stream("invoice", "i")), []string{})
	e.equal("scope's history", e.names(scopestore.Stream("user", "u")), []string{})
}

func (e *env) history(name string) []stream.Event {
	e.Helper()
	all, err := holdfast.Collect(stream.Read(e.ctx, e.hf, name, 0))
	e.ok(err)
	return all
}

var updateCases = []Case{
	{"do: each verb alone writes what it says", func(e *env) {
		e.ok(e.writeAll(e.ctx, e.hf))
		e.wroteAll()
	}},
	{"update: all of it is committed", func(e *env) {
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error { return e.writeAll(ctx, tx) }))
		e.wroteAll()
	}},
	{"update: an error rolls all of it back, and is returned", func(e *env) {
		err := e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.ok(e.writeAll(ctx, tx))
			return fmt.Errorf("wrapped: %w", errStop)
		})
		e.equal("error", errors.Is(err, errStop), true)
		e.wroteNone()
	}},
	{"update: a panic rolls all of it back, and goes on", func(e *env) {
		func() {
			defer func() { e.equal("recovered", recover(), "boom") }()
			_ = e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
				e.ok(e.writeAll(ctx, tx))
				panic("boom")
			})
		}()
		e.wroteNone()
		e.ok(e.writeAll(e.ctx, e.hf))
	}},
	{"update: a refused verb leaves the transaction usable", func(e *env) {
		e.appended("s", stream.Any, "a")
		e.created("i", "open")
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := e.append(tx, "s", stream.None, "x")
			e.moved(err, -1, 0)
			_, err = e.move(tx, "i", "x", "closed")
			e.refused(err, fault.InvalidTransition)
			_, err = entities.Create(ctx, store.DoerOf(tx), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "x"})
			e.refused(err, fault.Conflict)
			_, err = e.put(tx, "u", at(4), `{}`)
			e.moved(err, 4, -1)
			_, err = e.append(tx, "s", 0, "b")
			return err
		}))
		e.equal("stream", e.names("s"), []string{"a", "b"})
		e.equal("entity", e.entity("i").Status, "open")
	}},
	{"update: it reads what it wrote, and nobody else does before the end", func(e *env) {
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.ok(e.writeAll(ctx, tx))
			inside, err := holdfast.Collect(stream.Read(ctx, tx, "s", 0))
			e.ok(err)
			e.equal("inside", len(inside), 1)
			got, err := entities.Get(ctx, store.DoerOf(tx), "invoice", "i")
			e.ok(err)
			e.equal("inside", got.Status, "closed")
			e.wroteNone() // through the engine, with the context from outside
			return nil
		}))
		e.wroteAll()
	}},
	{"update: the engine inside it is refused, and the transaction goes on", func(e *env) {
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, e.hf, "s", stream.Any, stream.Event{Name: "x"})
			e.refused(err, fault.Reentrant)
			e.refused(e.hf.Update(ctx, func(context.Context, holdfast.Tx) error { return nil }), fault.Reentrant)
			_, err = e.hf.Status(ctx)
			e.refused(err, fault.Reentrant)
			_, err = e.append(tx, "s", stream.None, "a")
			return err
		}))
		e.equal("stream", e.names("s"), []string{"a"})
	}},
	{"update: a transaction that has ended is refused", func(e *env) {
		var kept holdfast.Tx
		e.ok(e.hf.Update(e.ctx, func(_ context.Context, tx holdfast.Tx) error {
			kept = tx
			_, err := e.append(tx, "s", stream.None, "a")
			return err
		}))
		_, err := e.append(kept, "s", stream.Any, "late")
		e.equal("error", errors.Is(err, store.ErrTxDone), true)
		e.equal("stream", e.names("s"), []string{"a"})
	}},
	{"update: of nothing commits nothing", func(e *env) {
		e.ok(e.hf.Update(e.ctx, func(context.Context, holdfast.Tx) error { return nil }))
	}},
	{"context: ended before, nothing is written", func(e *env) {
		e.appended("warm", stream.Any, "a") // the workspace is known
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		_, err := stream.Append(ctx, e.hf, "s", stream.Any, stream.Event{Name: "a"})
		e.equal("error", errors.Is(err, context.Canceled), true)
		err = e.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { return e.writeAll(ctx, tx) })
		e.equal("error", errors.Is(err, context.Canceled), true)
		e.wroteNone()
	}},
	{"context: ended inside an update, all of it is rolled back", func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		err := e.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.ok(e.writeAll(ctx, tx))
			cancel()
			_, err := stream.Append(ctx, tx, "s", stream.Any, stream.Event{Name: "b"})
			e.equal("inside", errors.Is(err, context.Canceled), true)
			return nil // the closure ignores the error, the update must not
		})
		e.equal("error", errors.Is(err, context.Canceled), true)
		e.wroteNone()
		e.ok(e.writeAll(e.ctx, e.hf))
	}},
}

var workspaceCases = []Case{
	{"workspace: two see nothing of each other", func(e *env) {
		other := freshWorkspace(context.Background())
		e.ok(e.writeAll(e.ctx, e.hf))
		_, err := entities.Get(other, engine.Of(e.hf), "invoice", "i")
		e.refused(err, fault.NotFound)
		_, err = scopestore.Get(other, engine.Of(e.hf), "user", "u")
		e.refused(err, fault.NotFound)
		for _, name := range []string{"s", entities.Stream("invoice", "i"), scopestore.Stream("user", "u")} {
			all, err := holdfast.Collect(stream.Read(other, e.hf, name, 0))
			e.ok(err)
			e.equal(name, len(all), 0)
		}
		_, err = entities.Transition(other, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"closed"}, To: "stolen", Event: "x"})
		e.refused(err, fault.NotFound)
		_, err = scopestore.Delete(other, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: "u"})
		e.refused(err, fault.NotFound)
		e.ok(e.writeAll(other, e.hf)) // the same names, without a conflict
		e.wroteAll()
	}},
	{"workspace: a name that cannot be one is refused", func(e *env) {
		for _, name := range []string{"", " ", "a b", "a/b", "-a", "a\x00", "ż", "0123456789012345678901234567890123456789012345678901234567890123"} {
			_, err := stream.Append(holdfast.InWorkspace(e.ctx, name), e.hf, "s", stream.Any, stream.Event{Name: "a"})
			e.refused(err, fault.Validation)
		}
	}},
	{"workspace: one made in an update that rolls back can be made again", func(e *env) {
		err := e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.ok(e.writeAll(ctx, tx))
			return errStop
		})
		e.equal("error", errors.Is(err, errStop), true)
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error { return e.writeAll(ctx, tx) }))
		e.wroteAll()
	}},
	{"workspace: a context that names none is in the default one", func(e *env) {
		name := fmt.Sprintf("default-%d", workspaces.Add(1)) // the default one is shared between cases
		_, err := stream.Append(context.Background(), e.hf, name, stream.None, stream.Event{Name: "a"})
		e.ok(err)
		all, err := holdfast.Collect(stream.Read(holdfast.InWorkspace(e.ctx, "default"), e.hf, name, 0))
		e.ok(err)
		e.equal("events", len(all), 1)
	}},
	{"engine: the database says what it is, and its time", func(e *env) {
		s, err := e.hf.Status(e.ctx)
		e.ok(err)
		if s.Database == "" || s.Schema < 1 || s.Now.Year() < 2020 {
			e.Errorf("got status %+v", s)
		}
	}},
}
