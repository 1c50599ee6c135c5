// Package store is the port between the capabilities and the databases.
//
// A capability declares what it needs of a database as a [Verb]: a name, the
// rows that it locks, a binder of arguments to columns, and a scanner of one
// row. Calling a verb makes a [Command], a plain value, and hands it to a
// [Doer]: the engine, which commits it by itself, or an open transaction,
// which runs it inside. An adapter knows a verb by its name alone and holds
// the SQL under that name, so that no adapter imports a capability and no
// capability imports an adapter. The binder, or the tags of a struct, name the
// columns, and the SQL uses them by these names (docs/sql.md).
//
//	var inc = store.VerbOf[incArgs](store.Decl{Name: "scopes.inc"}, keys, scan)
//	r, err := inc.Do(ctx, doer, args)
//
// # What a verb promises
//
// Every command is conditional: it names what it expects to find, and it
// answers one row, whether it won or lost ([Row.Applied]). An expected outcome
// is never an SQL error, because an error would abort the transaction of a
// user who runs the verb in their own.
//
// Each command that writes carries an id of its caller's making. The history
// event that it writes has that id as its key, in the same transaction, so the
// id tells afterwards whether a command whose answer was lost was applied.
//
// # Why commands are values
//
// The rejected shape was an interface with a method for each verb: it grows to
// sixty methods, each written twice, and it cannot group callers. As a value, a
// command can be sent alone, put beside others in one statement, or run in a
// transaction, and the code that calls it is the same.
package store
