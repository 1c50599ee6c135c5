// Package holdfast makes actions that must not happen twice safe under double-clicks, redelivery and crashes, on the
// database you already have.
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{})
//	if err != nil { … }
//	defer hf.Close()
//
//	_, err = stream.Append(ctx, hf, "orders-17", stream.None, stream.Event{Name: "placed"})
//
// [Open] opens an [Engine] on a database from package sqlite or package postgres. Each capability has its own
// package, whose functions take a [Doer], which is either the engine or a [Tx]. With the engine, a call commits in
// its own transaction. With a Tx, the call becomes part of an open transaction: one of the engine's
// ([Engine.Update]), or one that the program has begun itself (sqlite.Join, postgres.Join). In either case,
// Holdfast's writes and the program's own writes commit together or not at all.
//
// # Errors
//
// A refusal is an error with a code and with fields specific to the code. A refused call changes nothing, unless its
// documentation says that it works in several transactions:
//
//	if errors.Is(err, holdfast.ErrConcurrency) { … }
//
// If the database's response to a commit is lost, and Holdfast cannot find out whether the commit was applied, the
// error is [ErrOutcomeUnknown]. Holdfast never guesses the outcome.
package holdfast
