// Package scope stores versioned state: a JSON object under a kind and an id, such as the session
// of a user, that many callers change at once without lost updates.
//
//	type Cart struct {
//		Items []string `json:"items"`
//		Total int64    `json:"total"`
//	}
//
//	cart := scope.In[Cart](hf, "session", "s-17")
//	cart.Push(ctx, "items", "apples")   // made in the database: never a conflict
//	cart.Inc(ctx, "total", 250)
//	s, err := cart.Atomic(ctx, func(ctx context.Context, c Cart) (Cart, error) {
//		if c.Total > limit {
//			return c, errTooMuch // nothing is written
//		}
//		c.Items, c.Total = nil, 0
//		return c, nil
//	})
//
// The verbs are the same wherever the state is stored: in the database of an engine or inside one
// of its transactions ([In]), in memory ([Memory], [InMemory]), or in files ([InFiles]).
//
// # How a change is made
//
// In memory, the callers that change one scope take turns, in order of arrival. No version can conflict, so nothing is retried.
//
// In a store with other writers, Inc, Push, Patch, SetRecord, DeleteRecord and Delete are made in
// the store; changes that wait at the same time are made in one write, each with its own version.
// Atomic compares and swaps: it reads, calls the function, and writes if the version is still the
// one that was read; otherwise it retries ([MaxAttempts]). Callers of one process queue first, so
// a process never races with itself.
//
// A call that changes nothing writes nothing, and reports that in [Snapshot].Changed: no version,
// no event, no new time to live. The same holds for a change that another caller made first; this
// is checked in the store, not in the memory of this process.
//
// # Time
//
// Every change has a budget ([Budget], 30 seconds), which includes waiting. When it is spent, the
// call returns [ErrMutationTimeout], and the change is never written: a result that the function
// returns later is dropped, and the queue has continued without it. Once the store has begun to
// write, the call waits for the store's response and returns it. So a call that timed out can be
// retried. Only if a database stays unreachable is the outcome of a change unknown: the error is
// then [holdfast.ErrOutcomeUnknown], whatever the budget.
//
// # Functions inside functions
//
// The context that a function gets carries the scopes that are being changed. A change of the
// same scope inside returns [holdfast.ErrReentrant] at once. Another scope may be changed inside;
// two functions that do so in opposite order wait for each other until the first budget is spent.
package scope
