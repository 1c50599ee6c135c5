// Package run executes durable workflows step by step, and continues them after a crash at any point.
//
// A [Definition] lists the steps: Go functions ([Task]), waits for a time ([Wait]), for a signal
// ([Signal]) or for a decision ([Approval]), conditions ([If]), HTTP calls ([Call]) and steps of
// lifecycles ([Fire]). A run is one execution of a definition. Two callers that start a run under
// the same [Key] start a single run. A completed step never runs again. A step in flight has a
// lease, and a result that arrives after the lease is lost is rejected.
//
// The history of a run is a stream: stream.Read(ctx, hf, "$run/"+id, 0) reads it.
//
//	var chase = run.Define("chase", "1",
//		run.Task("remind", remind),
//		run.Signal("paid", "payment", run.Timeout(14*24*time.Hour), run.OnTimeout("ask")),
//		run.If("enough", "steps.paid.output.cents >= input.cents", "end", "remind"),
//		run.Approval("ask", "Write it off?", run.For("manager")),
//		run.Fire("off", "invoice", "=input.invoice", "write_off", "system"),
//	)
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, chase)
//	r, created, err := chase.Start(ctx, hf, invoice, run.Key("chase-"+invoice.ID))
package run
