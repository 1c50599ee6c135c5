// Package store is the port between the capabilities and the database adapters.
//
// A capability declares each database operation it needs as a [Verb]: a name, the rows it locks, a binder that
// maps arguments to columns, and a row scanner. Calling a verb makes a [Command], a plain value, and passes it
// to a [Doer]: the engine, which commits it on its own, or an open transaction. An adapter knows a verb only by
// its name and holds the SQL under that name, so no adapter imports a capability and no capability imports an
// adapter. The binder, or the tags of a struct, names the columns, and the SQL refers to them by these names
// (docs/sql.md).
//
//	var inc = store.VerbOf[incArgs](store.Decl{Name: "scopes.inc"}, keys, scan)
//	r, err := inc.Do(ctx, doer, args)
//
// # Guarantees of a verb
//
// Every command of the lane [Write] is conditional: it states what it expects to find and returns one row whether it was
// applied or refused ([Row.Applied]). An expected outcome is never an SQL error, because an error would abort the
// transaction of a user who runs the verb inside their own.
//
// Each such command has an id before it is sent. The event that it writes, in a stream or a history, has
// that id as its key and is written in the same transaction, so the id shows later whether a command whose response was
// lost was applied.
//
// # Why commands are values
//
// The rejected design was an interface with one method per verb: it grows to hundreds of methods, each implemented
// twice, and it cannot group callers. As a value, a command can be sent by itself, combined with others in one
// statement, or run in a transaction, and the calling code is the same.
package store
