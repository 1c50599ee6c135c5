package main

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/run"
)

// refunds is a run that waits for the approval of a manager, and then fires the step "refund" of the order. A text that
// begins with "=" is an expression. The arguments of run.Fire are the name of the run's step, the lifecycle, the entity,
// the step of the lifecycle and the requester.
var refunds = run.Define("refund", "1", // the version
	run.Approval("ask", `="Refund order " + input.order + "?"`, run.For("manager"), run.OnReject("end")), // a rejection ends the run
	run.Fire("refund", "order", "=input.order", "refund", "manager"))

// askRefund starts the run of a refund. The key makes sure that an order has at most one.
func (s *Shop) askRefund(ctx context.Context, hf *holdfast.Engine, id string) error {
	if _, err := s.orders.Get(ctx, hf, id); err != nil { // there is no such order
		return err
	}
	_, _, err := refunds.Start(ctx, hf, map[string]string{"order": id}, run.Key("refund-"+id))
	return err
}
