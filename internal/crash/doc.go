// Package crash makes everything crash: it stands between an engine and its
// database, numbers every point at which they meet, and strikes at the one that
// a plan names.
//
//	plan := new(crash.Plan)
//	hf, err := holdfast.Open(ctx, crash.Wrap(db, plan), holdfast.Config{})
//	plan.Arm(crash.Strike{At: 7, Fault: crash.After})
//	err = request(ctx, hf)     // dies when its seventh point has been applied
//	plan.Dead()                // true: open it again, and see what was left
//
// A point is a command that is committed by itself ("do events.append"), a
// command inside a transaction ("run events.append"), or the commit of one
// ("commit"). One goroutine that does the same thing twice meets the same points
// in the same order, so a case is told by its numbers alone and can be replayed.
//
// # What a fault is made of
//
// The database under it is real, and nothing is mocked: a command that a fault
// lets through is executed, a transaction that it stops is rolled back. What is
// made up is only what the caller is told, and only what an adapter may tell it:
// a write that is committed by itself, and a commit, may have an unknown
// outcome; a read, and a command inside a transaction that is not committed yet,
// cannot, and fail for certain.
//
// Rejected: killing a process at each point (package storetest does that too, at
// random points; it cannot choose one, and takes a hundred times as long), and
// panics, which run deferred functions that a process that dies does not.
package crash
