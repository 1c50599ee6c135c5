package batchengine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

type endArgs struct {
	id      string `arg:"batch"`
	handler string
	key     string        `arg:"key"`
	how     string        `arg:"how"`
	epoch   int64         `arg:"epoch"`
	output  []byte        `arg:"output,null"`
	message string        `arg:"error,null"`
	delay   time.Duration `arg:"delay"`
}

// Ended is the state of an item after the end of a lease.
type Ended struct {
	applied           bool
	State             string
	epoch             int64
	Failures, Crashes int64
	output            []byte
	over              bool // the batch may have ended
	last              bool // not applied: this would be the last allowed failure or crash, so the item must be given up
}

type giveUpArgs struct {
	id      string `arg:"batch"`
	handler string
	key     string `arg:"key"`
	how     string `arg:"how"`
	epoch   int64  `arg:"epoch"`
	message string `arg:"error,null"`
}

type givenUp struct {
	applied           bool
	state             string
	epoch             int64
	failures, crashes int64
	stuck, missing    bool // the refund is impossible; the wallet does not exist
}

type leasedArgs struct {
	id    string `arg:"batch"`
	key   string `arg:"key"`
	epoch int64  `arg:"epoch"`
}

type renewArgs struct {
	leasedArgs
	lease time.Duration `arg:"lease"`
}

// Renewed is the result of a renewal.
type Renewed struct {
	Until           time.Time
	CancelRequested bool
}

type expired struct {
	workspace, id, handler, key string
	epoch                       int64
	lost                        int64 // lost hand-outs in a row, this one included
}

var (
	settleVerb = store.VerbOf[endArgs](store.Decl{Name: "batches.settle", Group: true, Commutative: true, Events: store.HistoryEvents},
		func(a endArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(e *Ended) (*bool, []any) {
			return &e.applied, []any{&e.State, &e.epoch, &e.Failures, &e.Crashes, &e.output, &e.over, &e.last}
		})).RecoverWith(func(a endArgs, m store.CommitProof) Ended {
		e := Ended{applied: true, epoch: a.epoch, output: a.output}
		var data struct {
			State            string
			Failures, Deaths int64
			Over             bool
		}
		_ = json.Unmarshal(m.Data, &data) // written by Holdfast
		e.State, e.Failures, e.Crashes, e.over = data.State, data.Failures, data.Deaths, data.Over
		return e
	}).
		Wakes(func(a endArgs) []string { return []string{Topic(a.handler), ProgressTopic(a.id)} }).
		Emits(func(a endArgs) store.Emission { return emits(a.id, endNames[a.how]...) })
	giveUpVerb = store.VerbOf[giveUpArgs](store.Decl{Name: "batches.give_up_item", Events: store.HistoryEvents},
		func(a giveUpArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(g *givenUp) (*bool, []any) {
			return &g.applied, []any{&g.state, &g.epoch, &g.failures, &g.crashes, &g.stuck, &g.missing}
		})).RecoverWith(func(a giveUpArgs, m store.CommitProof) givenUp {
		g := givenUp{applied: true, state: "failed", epoch: a.epoch}
		var data struct{ Failures, Deaths int64 }
		_ = json.Unmarshal(m.Data, &data) // written by Holdfast
		g.failures, g.crashes = data.Failures, data.Deaths
		return g
	}).
		Wakes(func(a giveUpArgs) []string { return []string{Topic(a.handler), Maintenance, ProgressTopic(a.id)} }).
		Emits(func(a giveUpArgs) store.Emission { return emits(a.id, "itemGivenUp") })
	renewVerb = store.VerbOf[renewArgs](store.Decl{Name: "batches.renew", Lane: store.Vital}, nil,
		store.Each(func(x *Renewed) []any { return []any{&x.Until, &x.CancelRequested} }))
	markStoppedVerb = store.VerbOf[leasedArgs](store.Decl{Name: "batches.mark_stopped", Idempotent: true},
		func(a leasedArgs) []string { return []string{row(a.id)} }, store.ScanApplied).
		Wakes(func(leasedArgs) []string { return []string{Maintenance} })
	expiredVerb = store.NewVerb(store.Decl{Name: "batches.list_expired", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(e *expired) []any { return []any{&e.workspace, &e.id, &e.handler, &e.key, &e.epoch, &e.lost} }))
)

// endNames maps the way in which a lease ends to its events.
var endNames = map[string][]string{"done": {"itemSucceeded"}, "fail": {"itemFailed"}, "died": {"itemDied", "itemLost"}, "release": {"itemReleased"}}

// Settle ends an item with its output. Repeating it under the same epoch with the
// same output returns the same result.
func Settle(ctx context.Context, d store.Doer, t Taken, output []byte) (Ended, error) {
	e, err := settle(ctx, d, t, output)
	return e, late(ctx, d, t, "settle", err)
}

func settle(ctx context.Context, d store.Doer, t Taken, output []byte) (Ended, error) {
	if output == nil {
		output = []byte("null")
	}
	if err := strictjson.Check(output); err != nil {
		return Ended{}, err
	}
	e, err := settleVerb.DoAt(ctx, d, t.partition(), endArgs{id: t.Batch, handler: t.Handler, key: t.Key, how: "done", epoch: t.Epoch, output: output})
	switch {
	case err != nil:
		return e, err
	case e.applied:
		return e, finishIfOver(ctx, d, t.partition(), t.Batch, e.over)
	case e.State == "succeeded" && e.epoch == t.Epoch && strictjson.Equal(e.output, output):
		return e, nil
	}
	return e, lateError(ctx, d, t, e)
}

// lateError returns the error for a holder that lost its lease. If its item was
// cancelled meanwhile, it records that the holder has finished, so that the teardown
// no longer waits for it.
func lateError(ctx context.Context, d store.Doer, t Taken, e Ended) error {
	if e.State == "cancelled" && e.epoch == t.Epoch+1 { // the cancel incremented the epoch
		if _, err := markStoppedVerb.DoAt(ctx, d, t.partition(), leasedArgs{t.Batch, t.Key, t.Epoch}); err != nil {
			return err
		}
	}
	return lost(t)
}

// late records the refusal of a late holder, and returns err.
func late(ctx context.Context, d store.Doer, t Taken, action string, err error) error {
	return refusals.Note(store.InWorkspace(ctx, t.Workspace), d, refusals.Try{Stream: Stream(t.Batch), Action: action, Operation: t.Operation(), Epoch: t.Epoch}, err)
}

func lost(t Taken) error { return lease.Lost("item "+t.Key+" of batch "+t.Batch, t.Epoch) }

// Fail ends an attempt with a failure that its worker reported. The item is due
// again after the delay. If no attempt is left, or final is set, the item is given
// up and its cost is returned.
func Fail(ctx context.Context, d store.Doer, t Taken, message string, delay time.Duration, final bool) (Ended, error) {
	e, err := fail(ctx, d, t, message, delay, final)
	return e, late(ctx, d, t, "fail", err)
}

func fail(ctx context.Context, d store.Doer, t Taken, message string, delay time.Duration, final bool) (Ended, error) {
	message = lease.Plain(message)
	if !final {
		e, err := settleVerb.DoAt(ctx, d, t.partition(), endArgs{id: t.Batch, handler: t.Handler, key: t.Key, how: "fail", epoch: t.Epoch, message: message, delay: delay})
		if err != nil || e.applied {
			return e, err
		}
		if (e.State == "waiting" || e.State == "failed") && e.epoch == t.Epoch && e.Failures > t.Failures { // the failure was reported before
			return e, nil
		}
		if !e.last {
			return e, lateError(ctx, d, t, e)
		}
	}
	return giveUp(ctx, d, t, "fail", message)
}

func giveUp(ctx context.Context, d store.Doer, t Taken, how, message string) (Ended, error) {
	g, err := giveUpVerb.DoAt(ctx, d, t.partition(), giveUpArgs{t.Batch, t.Handler, t.Key, how, t.Epoch, message})
	e := Ended{applied: g.applied, State: g.state, epoch: g.epoch, Failures: g.failures, Crashes: g.crashes}
	switch {
	case err != nil:
		return e, err
	case g.applied: // the refund may pay for paused batches
		_, err := resume(ctx, d, t.partition(), "")
		return e, err
	case g.stuck && g.missing:
		return e, fault.New(fault.NotFound, "item %q of batch %q cannot be marked failed, because the wallet for its refund does not exist: restore the wallet", t.Key, t.Batch)
	case g.stuck:
		return e, fault.New(fault.Conflict, "item %q of batch %q cannot be marked failed, because the refund would exceed the wallet's maximum balance: reduce the balance", t.Key, t.Batch)
	case g.state == "failed" && g.epoch == t.Epoch && how == "fail" && g.failures > t.Failures:
		return e, nil // given up before, under this lease
	}
	return e, lateError(ctx, d, t, e)
}

// Release releases an item without counting an attempt; it is due after the delay.
// Repeating it under the same epoch returns the same result.
func Release(ctx context.Context, d store.Doer, t Taken, delay time.Duration) error {
	e, err := settleVerb.DoAt(ctx, d, t.partition(), endArgs{id: t.Batch, handler: t.Handler, key: t.Key, how: "release", epoch: t.Epoch, delay: delay})
	if err != nil || e.applied || e.State == "waiting" && e.epoch == t.Epoch {
		return err
	}
	return late(ctx, d, t, "release", lateError(ctx, d, t, e))
}

// Renew extends a lease, at most until the item's timeout, or returns
// [fault.LeaseLost]. It sets CancelRequested if the item was cancelled meanwhile.
func Renew(ctx context.Context, d store.Doer, t Taken, lease time.Duration) (Renewed, error) {
	all, err := renewVerb.DoAt(ctx, d, t.partition(), renewArgs{leasedArgs{t.Batch, t.Key, t.Epoch}, lease})
	return store.First(all, err, func() error { return late(ctx, d, t, "renew", lost(t)) })
}

func finishIfOver(ctx context.Context, d store.Doer, at store.Partition, id string, over bool) error {
	if !over {
		return nil
	}
	_, err := finishVerb.DoAt(ctx, d, at, moveArgs{id: id})
	return err
}

// sweepLimit is the maximum number of rows per sweep.
const sweepLimit = 500

// Expire ends the expired leases of a workspace, or of all on a shard, and returns
// their number. Each one counts as a crash of its holder, or as a lost hand-out.
func Expire(ctx context.Context, d store.Doer, at store.Partition) (freed int, err error) {
	all, err := expiredVerb.DoAt(ctx, d, at, sweepLimit)
	if err != nil {
		return 0, err
	}
	var failed error
	for _, x := range all {
		t := Taken{Shard: at.Shard, Workspace: x.workspace, Batch: x.id, Handler: x.handler, Key: x.key, Lease: lease.Lease{Epoch: x.epoch}}
		e, err := settleVerb.DoAt(ctx, d, t.partition(), endArgs{id: x.id, handler: x.handler, key: x.key, how: "died", epoch: x.epoch, delay: lease.LostPause(x.lost, x.key)})
		if err == nil && e.last {
			e, err = giveUp(ctx, d, t, "died", "")
		}
		if fault.CodeOf(err) != fault.LeaseLost { // another node released it
			failed = errors.Join(failed, err)
		}
		if e.applied {
			freed++
			meter.Of(d).Expire(meter.Item, slog.String("workspace", x.workspace), slog.String("batch", x.id), slog.String("item", x.key), slog.String("operation", t.Operation()), slog.Int64("epoch", x.epoch))
		}
	}
	return freed, failed
}
