// Package holdfast makes actions that must not happen twice safe under
// double-clicks, redelivery and crashes, on the database you already have.
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{})
//	if err != nil { … }
//	defer hf.Close()
//
//	_, err = stream.Append(ctx, hf, "orders-17", stream.None, stream.Event{Name: "placed"})
//
// An [Engine] is opened on a database: package sqlite or package postgres. The
// capabilities are packages of their own, and every verb of theirs takes a
// [Doer]: the engine, which commits the verb by itself, or a [Tx], which makes
// it part of a transaction. That transaction is one of the engine's
// ([Engine.Update]) or one that the program has begun itself (sqlite.Join,
// postgres.Join), so that what Holdfast writes and what the program writes
// commit together or not at all.
//
// # Errors
//
// A refusal is an error with a code, and the error's own facts. It changed
// nothing:
//
//	if errors.Is(err, holdfast.ErrConcurrency) { … }
//
// "Once" is never promised where it cannot be kept. An answer that was lost on
// the way back from the database is [ErrOutcomeUnknown], not a guess.
package holdfast
