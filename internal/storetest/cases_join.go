package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

// payment returns the SQL that inserts a row of the user's own, with a key for this case.
func (e *env) payment() (id, insert string) {
	id = fmt.Sprintf("p-%d", workspaces.Add(1))
	return id, `INSERT INTO payments (id, note) VALUES ('` + id + `', 'of the user')`
}

// paid reports whether the user's row exists.
func (e *env) paid(id string) bool {
	e.Helper()
	tx := e.db.Begin(e.T, e.hf)
	defer tx.Rollback()
	n, err := tx.Count(`payments WHERE id = '` + id + `'`)
	e.ok(err)
	return n == 1
}

func (e *env) join() (UserTx, holdfast.Tx) {
	e.Helper()
	user := e.db.Begin(e.T, e.hf)
	tx, err := user.Join()
	if err != nil {
		_ = user.Rollback()
		e.Fatal(err)
	}
	return user, tx
}

var joinCases = []Case{
	{"join: the user's row and every verb are committed together", func(e *env) {
		id, insert := e.payment()
		user, tx := e.join()
		e.ok(user.Exec(insert))
		e.ok(e.writeAll(e.ctx, tx))
		e.ok(user.Commit())
		e.equal("paid", e.paid(id), true)
		e.wroteAll()
	}},
	{"join: the user's row and every verb are rolled back together", func(e *env) {
		id, insert := e.payment()
		user, tx := e.join()
		e.ok(e.writeAll(e.ctx, tx))
		e.ok(user.Exec(insert))
		e.ok(user.Rollback())
		e.equal("paid", e.paid(id), false)
		e.wroteNone()
	}},
	{"join: a refused verb leaves the user's transaction usable", func(e *env) {
		e.appended("s", stream.Any, "a")
		e.created("i", "open")
		id, insert := e.payment()
		user, tx := e.join()
		_, err := e.append(tx, "s", 7, "x")
		e.moved(err, 7, 0)
		_, err = e.move(tx, "i", "paid", "sent")
		e.refused(err, fault.InvalidTransition)
		_, err = entities.Create(e.ctx, store.DoerOf(tx), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "x"})
		e.refused(err, fault.Conflict)
		_, err = e.inc(tx, "u", "", 1)
		e.refused(err, fault.Validation)
		e.ok(user.Exec(insert))
		_, err = e.append(tx, "s", 0, "b")
		e.ok(err)
		e.ok(user.Commit())
		e.equal("paid", e.paid(id), true)
		e.equal("stream", e.names("s"), []string{"a", "b"})
		e.equal("entity", e.entity("i").Status, "open")
	}},
	{"join: nobody sees it before the user commits", func(e *env) {
		user, tx := e.join()
		e.ok(e.writeAll(e.ctx, tx))
		inside, err := holdfast.Collect(stream.Read(e.ctx, tx, "s", 0))
		e.ok(err)
		e.equal("inside", len(inside), 1)
		e.wroteNone()
		e.ok(user.Commit())
		e.wroteAll()
	}},
	{"join: the user's own statement that fails takes the verbs along", func(e *env) {
		id, insert := e.payment()
		user, tx := e.join()
		e.ok(user.Exec(insert))
		e.ok(e.writeAll(e.ctx, tx))
		if err := user.Exec(insert); err == nil {
			e.Error("a duplicate key was accepted")
		}
		e.ok(user.Rollback())
		e.equal("paid", e.paid(id), false)
		e.wroteNone()
	}},
	{"join: a verb after the user's commit is refused", func(e *env) {
		user, tx := e.join()
		e.ok(user.Commit())
		if _, err := e.append(tx, "s", stream.Any, "late"); err == nil {
			e.Error("a verb ran in a transaction that has ended")
		}
		e.equal("stream", e.names("s"), []string{})
	}},
	{"join: the answers are those of the verb alone", func(e *env) {
		answers := func(d holdfast.Doer, id string) string {
			last, err1 := e.append(d, id, stream.Any, "a", "b")
			made, err2 := entities.Create(e.ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: "open"})
			moved, err3 := e.move(d, id, "closed", "open")
			again, err4 := e.move(d, id, "closed", "open")
			put, err5 := e.put(d, id, none, `{"n":1}`)
			sum, err6 := e.inc(d, id, "n", 4)
			return words(last, made.Version, moved.Version, moved.Status, again.Version, put.Version, sum.Version, sum.Value,
				err1, err2, err3, fault.CodeOf(err4), err5, err6)
		}
		single := answers(e.hf, "a")
		var inside string
		e.ok(e.hf.Update(e.ctx, func(_ context.Context, tx holdfast.Tx) error {
			inside = answers(tx, "b")
			return nil
		}))
		user, tx := e.join()
		joined := answers(tx, "c")
		e.ok(user.Commit())
		e.equal("update", inside, single)
		e.equal("join", joined, single)
	}},
	{"raw: a row of the user's own in the engine's transaction", func(e *env) {
		id, insert := e.payment()
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			if err := e.writeAll(ctx, tx); err != nil {
				return err
			}
			return e.db.Raw(ctx, tx, insert)
		}))
		e.equal("paid", e.paid(id), true)
		e.wroteAll()
	}},
	{"raw: a row of the user's own is rolled back with the engine's transaction", func(e *env) {
		id, insert := e.payment()
		err := e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.ok(e.db.Raw(ctx, tx, insert))
			e.ok(e.writeAll(ctx, tx))
			return errStop
		})
		e.equal("error", errors.Is(err, errStop), true)
		e.equal("paid", e.paid(id), false)
		e.wroteNone()
	}},
	{"raw: a savepoint of the user's own takes a verb back, and the rest is committed", func(e *env) {
		id, insert := e.payment()
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			for _, step := range []func() error{
				func() error { return e.db.Raw(ctx, tx, insert) },
				func() error { return e.db.Raw(ctx, tx, `SAVEPOINT mine`) },
				func() error { _, err := e.append(tx, "undone", stream.Any, "x"); return err },
				func() error { return e.db.Raw(ctx, tx, `ROLLBACK TO SAVEPOINT mine`) },
				func() error { _, err := e.append(tx, "kept", stream.Any, "x"); return err },
			} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		}))
		e.equal("paid", e.paid(id), true)
		e.equal("undone", e.names("undone"), []string{})
		e.equal("kept", e.names("kept"), []string{"x"})
	}},
	{"raw: the user's statement that fails inside an update rolls it back", func(e *env) {
		err := e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.ok(e.writeAll(ctx, tx))
			return e.db.Raw(ctx, tx, `INSERT INTO payments (id, note) VALUES (NULL, NULL)`)
		})
		if err == nil {
			e.Error("a row without a key was accepted")
		}
		e.wroteNone()
	}},
}
