// Package holdfast makes actions that must not happen twice safe under double-clicks, redelivery and crashes, on the
// database you already have.
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{})
//	if err != nil { … }
//	defer hf.Close()
//
//	_, err = stream.Append(ctx, hf, "orders-17", stream.None, stream.Event{Name: "placed"})
//
// An [Engine] is opened on a database of package sqlite or package postgres. Each capability is a package. Its verbs
// take a [Doer]: the engine, which commits the verb in its own transaction, or a [Tx], which makes the verb part of
// an open transaction. That transaction is one of the engine's ([Engine.Update]) or one that the program has begun
// itself (sqlite.Join, postgres.Join). In both cases the writes of Holdfast and of the program commit together or not
// at all.
//
// # Errors
//
// A refusal is an error with a code and with fields specific to the code. A refused call changed nothing:
//
//	if errors.Is(err, holdfast.ErrConcurrency) { … }
//
// Holdfast never promises "once" where it cannot keep the promise. If the database's response to a commit is lost,
// the error is [ErrOutcomeUnknown], not a guess.
package holdfast
