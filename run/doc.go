// Package run takes workflows step by step, so that a crash at any point costs nothing but
// time.
//
// A [Definition] says which steps there are: code of the program's own ([Task]), waits for a
// time ([Wait]), for a signal ([Signal]) or for somebody's decision ([Approval]), conditions
// ([If]), calls ([Call]) and steps of lifecycles ([Fire]). A run is one execution of it. Two
// who start one under the same [Key] start one; a step that is completed is never done
// again; a step that is under way is held, and what its holder brings after the hold is lost
// is refused.
//
//	var chase = run.Define("chase", "1",
//		run.Task("remind", remind),
//		run.Signal("paid", "payment", 14*24*time.Hour, run.OnTimeout("ask")),
//		run.If("enough", "steps.paid.output.cents >= input.cents", "end", "remind"),
//		run.Approval("ask", "Write it off?", 0, run.For("manager")),
//		run.Fire("off", "invoice", "=input.invoice", "write_off", "system"),
//	)
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, run.Serve(chase))
//	r, created, err := chase.Start(ctx, hf, invoice, run.Key("chase-"+invoice.ID))
package run
