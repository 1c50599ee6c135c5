// Package scope keeps versioned state: a JSON object under a kind and an id, such as the
// session of a user, that many change at once and nobody overwrites.
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
// The verbs are the same wherever the state is: in the database of an engine or inside one
// of its transactions ([In]), in memory ([Memory], [InMemory]), in files ([InFiles]).
//
// # How a change is made
//
// In memory, those who change one container stand in a queue, and go one by one in the
// order in which they came. There is no version to lose, so nothing is tried again.
//
// In a store that others write to as well, Inc, Push, Patch, SetRecord, DeleteRecord and
// Delete are made where the state is; those that wait at the same time are made in one
// write, each with its own version. Atomic compares and swaps: it reads, has the function
// decide, and writes if the version is still the one that was read, else it tries again
// ([MaxAttempts]). Callers of one process stand in the queue first, so a process never races
// itself.
//
// What changes nothing writes nothing, and says so ([Snapshot].Changed): no version, no
// event, no new end of its time to live. So does a change that another made first, and that
// is looked up in the store, not in what this process remembers.
//
// # Time
//
// Every change has a budget ([Budget], 30 seconds), and waiting counts. When it is spent the
// call is [ErrMutationTimeout], and the change never lands: what a function returns later is
// dropped, and the queue has gone on without it. Once the store has begun to write, the call
// waits for its answer, and the answer is the truth. So a call that timed out can be made
// again. Only where a database stays out of reach is it not known what became of a change:
// that is [holdfast.ErrOutcomeUnknown], whatever the budget was.
//
// # Functions inside functions
//
// The context that a function is given knows the containers that are held. A change of the
// same container inside is [ErrReentrant], at once. Another container may be changed inside;
// two that do so in opposite order wait for each other until the first budget is spent.
package scope
