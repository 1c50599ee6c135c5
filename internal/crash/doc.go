// Package crash injects faults between an engine and its database: it numbers every point at which they meet,
// and strikes at the point that a plan names.
//
//	plan := new(crash.Plan)
//	hf, err := holdfast.Open(ctx, crash.Wrap(db, plan), holdfast.Config{})
//	plan.Arm(crash.Strike{At: 7, Fault: crash.After})
//	err = request(ctx, hf)     // crashes after its seventh point was applied
//	plan.Dead()                // true: reopen it and check what was left
//
// A point is a command that is committed by itself ("do events.append"), a command inside a transaction ("run
// events.append"), the commit of a transaction ("commit"), or a call of a body to the world outside ("call charge",
// see [Call]). A goroutine that does the same thing twice meets
// the same points in the same order, so the numbers alone identify a case and it can be replayed.
//
// # How faults are made
//
// The database is real, and nothing is mocked: a command that a fault lets through is executed, a transaction
// that it stops is rolled back. Only the caller's result is made up, and only as an adapter may report it: a
// write that is committed by itself, and a commit, may have an unknown outcome; a read, and a command inside an
// uncommitted transaction, cannot, and fail definitely.
//
// Rejected: killing a process at each point (package storetest does that too, at random points; it cannot
// choose one, and takes a hundred times as long), and panics, which run deferred functions that a killed
// process does not.
package crash
