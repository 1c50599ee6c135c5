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

// person resolves what is uncertain by what the world knows, and acknowledges contradictions, until
// ctx ends.
func (l *load) person(ctx context.Context, w *world) {
	for pause(ctx, time.Second) {
		l.tend(ctx, w)
	}
}

// tend does that once.
func (l *load) tend(ctx context.Context, w *world) {
	for _, o := range l.operations(ctx, "uncertain") {
		l.resolve(ctx, w, o)
	}
	for _, o := range l.operations(ctx, "contradicted") {
		l.acknowledge(ctx, o)
	}
}

func (l *load) operations(ctx context.Context, state string) []wire.Operation {
	all, _ := list(ctx, l.caller, all1(api.ListOperations, client.OperationFilter{State: state}))
	return all // what was not read is read the next time
}

// resolve says what the world knows. What no handler resumes, and what has acted by itself, ends with that.
func (l *load) resolve(ctx context.Context, w *world, o wire.Operation) {
	in := wire.Resolve{}
	happened, whole := false, len(o.Effects) > 0 // whole: nothing is left to be done
	for _, x := range o.Effects {
		charges := w.charged(x.Key)
		if len(charges) > 0 {
			happened = true
			l.note(func() { l.resolved[o.Subject] = max(l.resolved[o.Subject], len(charges)-1) })
		}
		if x.State == "begun" {
			k := wire.KnownEffect{Name: x.Name, Ordinal: x.Ordinal, Happened: len(charges) > 0}
			if k.Happened {
				k.Result = raw(charges[0].Call)
			}
			in.Effects = append(in.Effects, k)
			whole = whole && x.Name == "$body" && k.Happened
		}
	}
	switch byHand := strings.HasPrefix(o.Subject, "desk/"); {
	case happened && (byHand || whole):
		in.Outcome = "success"
	case byHand || len(o.Effects) == 0:
		in.Outcome = "failure"
	}
	l.note(func() { l.unknown[o.ID+" "+capabilityOf(o.Subject)] = true })
	_, err := ask(ctx, l.caller, with2(api.ResolveOperation, o.ID, in))
	if err != nil && fault.CodeOf(err) != fault.Conflict && answered(err) && fault.CodeOf(err) != fault.NotFound {
		l.defect("resolve %s %s %+v: %v", o.ID, o.Subject, in, err)
	}
}

// acknowledge notes contradictions, and says that they were seen.
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
	_, _ = ask(ctx, l.caller, with2(api.AcknowledgeContradictions, o.ID, in))
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

// stuck is what has not come to its end, with its capability.
type stuck struct{ capability, what string }

// settle has everything come to its end, now that nothing fails any more. It returns what does not.
func (l *load) settle(ctx context.Context, w *world) (left []stuck) {
	calm := 0
	for round := 0; calm < 2; round++ { // a second look, since things pass from one list to the next
		l.tend(ctx, w)
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

// unsettled lists what is not at its end, and does what a user would do about it.
func (l *load) unsettled(ctx context.Context, round int) (left []stuck) {
	still := func(capability, format string, args ...any) {
		left = append(left, stuck{capability, fmt.Sprintf(format, args...)})
	}
	read := func(err error) {
		if err != nil {
			still("streams", "a list was not read: %v", err)
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
			_, _ = ask(ctx, l.caller, with2(api.RetryRun, r.ID, wire.Command{}))
		case *r.CurrentStepName == "paid" && !l.wasSignalled(r.ID):
			id := "settle"
			_, _ = ask(ctx, l.caller, with2(api.SignalRun, r.ID, wire.Signal{Type: "payment", ID: &id, Payload: raw(id)}))
		}
	}
	batches, err := list(ctx, l.caller, all1(api.ListBatches, ""))
	read(err)
	for _, b := range batches {
		if b.Status == "COMPLETED" || b.Status == "CANCELLED" {
			continue
		}
		still("batches", "batch %s is %s: %+v %s", b.ID, b.Status, b.Counts, b.Error)
		if b.Status == "PAUSED" {
			x := credit{wallet: b.Wallet, points: 1000}
			_, x.fate, _ = want(ctx, l, "wallets", with2(api.CreditWallet, b.Wallet, wire.Credit{Points: 1000, Reference: fmt.Sprint("settle-", b.ID, round)}))
			l.note(func() { l.credits = append(l.credits, x) })
		}
	}
	positions, err := list(ctx, l.caller, all2(api.ListPositions, "*", client.PositionFilter{}))
	read(err)
	for _, p := range positions {
		if p.Watermark == p.Head && p.LeasedBy == "" && !p.Blocked {
			continue
		}
		still("reactions", "%s stands at %d of %d on %s: %+v", p.Reaction, p.Watermark, p.Head, p.Stream, p)
		if p.Blocked && !strings.HasPrefix(p.Reaction, "$") {
			_, _ = ask(ctx, l.caller, with2(api.UnblockReactions, p.Reaction, wire.Repair{Streams: []string{p.Stream}}))
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
