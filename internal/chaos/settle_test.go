package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// operator resolves uncertain operations from the records of the world, and acknowledges
// contradictions, until ctx ends.
func (l *load) operator(ctx context.Context, w *world) {
	for pause(ctx, time.Second) {
		l.resolveAll(ctx, w)
	}
}

// resolveAll resolves and acknowledges all current operations once.
func (l *load) resolveAll(ctx context.Context, w *world) {
	for _, o := range l.operations(ctx, "uncertain") {
		l.resolve(ctx, w, o)
	}
	for _, o := range l.operations(ctx, "contradicted") {
		l.acknowledge(ctx, o)
	}
}

func (l *load) operations(ctx context.Context, state string) []wire.Operation {
	all, _ := list(ctx, l.caller, all1(api.ListOperations, client.OperationFilter{State: state}))
	return all // after an error the next round reads them
}

// resolve resolves an operation from the records of the world. It sets an outcome if no handler
// resumes the operation, or if nothing is left to do.
func (l *load) resolve(ctx context.Context, w *world, o wire.Operation) {
	in := wire.Resolve{}
	happened, complete := false, len(o.Effects) > 0 // complete: nothing is left to do
	for _, x := range o.Effects {
		charges := w.charged(x.Key)
		if len(charges) > 0 {
			happened = true
			l.note(func() { l.resolved[o.Subject] = max(l.resolved[o.Subject], len(charges)-1) })
		}
		if x.State == "begun" {
			k := wire.KnownEffect{Name: x.Name, Ordinal: x.Ordinal, Happened: new(len(charges) > 0)}
			if *k.Happened {
				k.Result = raw(charges[0].Call)
			}
			in.Effects = append(in.Effects, k)
			complete = complete && x.Name == "$body" && *k.Happened
		}
	}
	switch manual := strings.HasPrefix(o.Subject, "desk/"); {
	case happened && (manual || complete):
		in.Outcome = "success"
	case manual || len(o.Effects) == 0:
		in.Outcome = "failure"
	}
	l.note(func() { l.unknown[o.ID+" "+capabilityOf(o.Subject)] = true })
	_, err := request(ctx, l.caller, with2(api.ResolveOperation, o.ID, in))
	if err != nil && fault.CodeOf(err) != fault.Conflict && conclusive(err) && fault.CodeOf(err) != fault.NotFound {
		l.defect("resolve %s %s %+v: %v", o.ID, o.Subject, in, err)
	}
}

// acknowledge records contradictions and acknowledges them.
func (l *load) acknowledge(ctx context.Context, o wire.Operation) {
	in := wire.Acknowledge{}
	for _, c := range o.Contradictions {
		in.Contradictions = append(in.Contradictions, c.ID)
		l.note(func() {
			if l.late[o.Subject] == nil {
				l.late[o.Subject] = make(map[string]string)
			}
			l.late[o.Subject][c.ID] = string(c.Result)
		})
	}
	_, _ = request(ctx, l.caller, with2(api.AcknowledgeContradictions, o.ID, in))
}

func capabilityOf(subject string) string {
	switch {
	case strings.HasPrefix(subject, "desk/"):
		return "claims"
	case strings.HasPrefix(subject, "run "):
		return "runs"
	}
	return "lifecycles"
}

// stuck is an unfinished operation with its capability.
type stuck struct{ capability, what string }

// settle waits until all operations are finished, after the faults have stopped. It returns those
// that are not.
func (l *load) settle(ctx context.Context, w *world) (left []stuck) {
	calm := 0
	for round := 0; calm < 2; round++ { // twice, because an operation may move between the lists meanwhile
		l.resolveAll(ctx, w)
		if left = l.unsettled(ctx, round); len(left) > 0 {
			calm = 0
		} else {
			calm++
		}
		if !pause(ctx, 500*time.Millisecond) {
			return left
		}
	}
	return nil
}

// unsettled returns the unfinished operations, and does what a user would do to finish them.
func (l *load) unsettled(ctx context.Context, round int) (left []stuck) {
	still := func(capability, format string, args ...any) {
		left = append(left, stuck{capability, fmt.Sprintf(format, args...)})
	}
	read := func(err error) {
		if err != nil {
			still("streams", "cannot read a list: %v", err)
		}
	}
	for _, kind := range []string{"order", "desk", "ticket"} {
		for _, status := range map[string][]string{"order": {"open", "paying"}, "desk": {"open", "serving"}, "ticket": nil}[kind] {
			all, err := list(ctx, l.caller, all2(api.ListEntities, kind, client.EntityFilter{Status: status}))
			read(err)
			for _, e := range all {
				still(capabilityOf(kind+"/"), "%s %s is %s: %+v", kind, e.ID, e.Status, e.Claim)
				if status == "open" && kind == "order" {
					l.fire(ctx, e.ID, requesters[round%len(requesters)])
				}
			}
		}
	}
	for _, o := range l.operations(ctx, "") {
		still(capabilityOf(o.Subject), "operation %s of %s is %s: %s", o.ID, o.Subject, o.State, o.Error)
	}
	runs, err := list(ctx, l.caller, all1(api.ListRuns, client.RunFilter{}))
	read(err)
	for _, r := range runs {
		if r.Status == "COMPLETED" || r.Status == "CANCELLED" {
			continue
		}
		still("runs", "run %s is %s at %v", r.ID, r.Status, *r.CurrentStepName)
		switch {
		case r.Status == "FAILED":
			_, _ = request(ctx, l.caller, with2(api.RetryRun, r.ID, wire.Command{}))
		case *r.CurrentStepName == "paid" && !l.wasSignalled(r.ID):
			id := "settle"
			_, _ = request(ctx, l.caller, with2(api.SignalRun, r.ID, wire.Signal{Type: "payment", ID: &id, Payload: raw(id)}))
		}
	}
	batches, err := list(ctx, l.caller, all1(api.ListBatches, client.BatchFilter{}))
	read(err)
	for _, b := range batches {
		if b.Status == "COMPLETED" || b.Status == "CANCELLED" {
			continue
		}
		still("batches", "batch %s is %s: %+v %s", b.ID, b.Status, b.Counts, b.Error)
		if b.Status == "PAUSED" {
			x := credit{wallet: b.Wallet, points: 1000}
			_, x.outcome, _ = submit(ctx, l, "wallets", with2(api.CreditWallet, b.Wallet, wire.Credit{Points: 1000, Reference: fmt.Sprint("settle-", b.ID, round)}))
			l.note(func() { l.credits = append(l.credits, x) })
		}
	}
	positions, err := list(ctx, l.caller, all2(api.ListPositions, "*", client.PositionFilter{}))
	read(err)
	for _, p := range positions {
		if p.Watermark == p.Head && p.LeasedBy == "" && !p.Blocked {
			continue
		}
		still("reactions", "%s is at %d of %d on %s: %+v", p.Reaction, p.Watermark, p.Head, p.Stream, p)
		if p.Blocked && !strings.HasPrefix(p.Reaction, "$") {
			_, _ = request(ctx, l.caller, with2(api.UnblockReactions, p.Reaction, wire.Repair{Streams: []string{p.Stream}}))
		}
	}
	return left
}

func (l *load) wasSignalled(id string) (was bool) {
	l.note(func() {
		for _, r := range l.runs {
			was = was || r.id == id && r.signalled == acked
		}
	})
	return was
}
