// Package scope stores versioned state: a JSON object under a kind and an id, such as a user's
// session, that many callers change concurrently without lost updates.
//
//	type Cart struct {
//		Items []string `json:"items"`
//		Total int64    `json:"total"`
//	}
//
//	cart := scope.In[Cart](hf, "session", "s-17")
//	cart.Push(ctx, "items", "apples")   // applied in the database, so it cannot conflict
//	cart.Inc(ctx, "total", 250)
//	s, err := cart.Atomic(ctx, func(ctx context.Context, c Cart) (Cart, error) {
//		if c.Total > limit {
//			return c, errTooMuch // nothing is written
//		}
//		c.Items, c.Total = nil, 0
//		return c, nil
//	})
//
// The calls are the same wherever the state is stored: in an engine's database or inside one of its
// transactions ([In]), in memory ([Memory], [MemoryStore]), or in files ([FileStore]).
//
// # How a change is made
//
// In memory, callers that change the same scope take turns, in order of arrival. Versions cannot conflict, so no change
// is retried.
//
// In a store with other writers, Inc, Push, Patch, SetRecord, DeleteRecord and Delete are applied in the store. Changes
// that wait at the same time are applied in one write, each with its own version. Atomic compares and swaps: it reads,
// calls the function, and writes if the version is still the one that was read; otherwise it tries again, up to [MaxAttempts] attempts in total. Put
// does the same without a function.
// Callers in one process queue first, so a process never races with itself.
//
// If a call changes nothing, [Snapshot].Changed is false. Such a call creates no version and no event, and does not
// restart the time to live. The same is true if another caller has already made the change; Holdfast checks this
// against the store, not against a copy in this process.
//
// In an engine's database, the history of a scope is a stream: stream.Read(ctx, hf, "$scope/"+kind+"/"+id, 0) reads it.
//
// If a stored state cannot be decoded as the type of the handle, the error has the code INTERNAL_ERROR. An edit such as
// Inc may have been committed nevertheless: see [Snapshot].
//
// # Time
//
// Every change outside a transaction has a budget ([Budget], 30 seconds), which includes waiting. When the budget is spent, the call returns
// [ErrMutationTimeout], and the change is never applied. If the function returns later, its result is dropped: the
// queue has already moved on. Once the store has begun to write, the call waits for the store's response and returns
// it. You can therefore retry a call that timed out. If a database stays unreachable, the outcome of a change is
// unknown, and the error is [holdfast.ErrOutcomeUnknown], regardless of the budget.
//
// # Functions inside functions
//
// The context that a function gets records which scopes are being changed. If the function changes the same scope
// again, that call returns [holdfast.ErrReentrant] immediately. The function may change other scopes. If two functions
// change each other's scopes in opposite order, they wait for each other until the first budget is spent.
package scope
