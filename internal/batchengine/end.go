package batchengine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
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

// Ended is how an item stands behind the end of a hold.
type Ended struct {
	applied           bool
	State             string
	epoch             int64
	Failures, Crashes int64
	output            []byte
	over              bool // the batch might be at its end
	last              bool // it may not fail, or die, any more
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
	stuck, missing    bool // the wallet cannot take it back, or is not there
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

// Renewed is a hold that was extended.
type Renewed struct {
	Until           time.Time
	CancelRequested bool
}

type expired struct {
	workspace, id, handler, key string
	epoch                       int64
	lost                        int64 // how many hand-outs in a row are by that
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
		_ = json.Unmarshal(m.Data, &data) // it is ours
		e.State, e.Failures, e.Crashes, e.over = data.State, data.Failures, data.Deaths, data.Over
		return e
	}).
		Wakes(func(a endArgs) []string { return []string{Topic(a.handler), Progress(a.id)} }).
		Emits(func(a endArgs) store.Emission { return emits(a.id, endNames[a.how]...) })
	giveUpVerb = store.VerbOf[giveUpArgs](store.Decl{Name: "batches.giveup", Events: store.HistoryEvents},
		func(a giveUpArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(g *givenUp) (*bool, []any) {
			return &g.applied, []any{&g.state, &g.epoch, &g.failures, &g.crashes, &g.stuck, &g.missing}
		})).RecoverWith(func(a giveUpArgs, m store.CommitProof) givenUp {
		g := givenUp{applied: true, state: "failed", epoch: a.epoch}
		var data struct{ Failures, Deaths int64 }
		_ = json.Unmarshal(m.Data, &data) // it is ours
		g.failures, g.crashes = data.Failures, data.Deaths
		return g
	}).
		Wakes(func(a giveUpArgs) []string { return []string{Topic(a.handler), Maintenance, Progress(a.id)} }).
		Emits(func(a giveUpArgs) store.Emission { return emits(a.id, "itemGivenUp") })
	renewVerb = store.VerbOf[renewArgs](store.Decl{Name: "batches.renew", Lane: store.Vital}, nil,
		store.Each(func(x *Renewed) []any { return []any{&x.Until, &x.CancelRequested} }))
	leftVerb = store.VerbOf[leasedArgs](store.Decl{Name: "batches.left", Idempotent: true},
		func(a leasedArgs) []string { return []string{row(a.id)} }, store.ScanApplied).
		Wakes(func(leasedArgs) []string { return []string{Maintenance} })
	expiredVerb = store.NewVerb(store.Decl{Name: "batches.expired", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(e *expired) []any { return []any{&e.workspace, &e.id, &e.handler, &e.key, &e.epoch, &e.lost} }))
)

// endNames names the events by how a hold ends.
var endNames = map[string][]string{"done": {"itemSucceeded"}, "fail": {"itemFailed"}, "died": {"itemDied", "itemLost"}, "release": {"itemReleased"}}

// Settle ends an item with its output. Settling again under the epoch that settled it,
// with the same output, gives the same answer.
func Settle(ctx context.Context, d store.Doer, t Taken, output []byte) (Ended, error) {
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
		return e, closeAt(ctx, d, t.partition(), t.Batch, e.over)
	case e.State == "succeeded" && e.epoch == t.Epoch && strictjson.Equal(e.output, output):
		return e, nil
	}
	return e, left(ctx, d, t, e)
}

// left is the error of a holder that comes too late. If its item was cancelled meanwhile, it
// is noted that the holder has done with it: the teardown need not wait for it any longer.
func left(ctx context.Context, d store.Doer, t Taken, e Ended) error {
	if e.State == "cancelled" && e.epoch == t.Epoch+1 {
		if _, err := leftVerb.DoAt(ctx, d, t.partition(), leasedArgs{t.Batch, t.Key, t.Epoch}); err != nil {
			return err
		}
	}
	return lost(t)
}

func lost(t Taken) error { return lease.Lost("the item "+t.Key+" of the batch "+t.Batch, t.Epoch) }

// Fail ends a try that its worker lived to report. The item is due again after the
// delay, or, if it has failed as often as it may or is not to be tried again, is given up:
// what it cost is returned.
func Fail(ctx context.Context, d store.Doer, t Taken, message string, delay time.Duration, final bool) (Ended, error) {
	message = lease.Plain(message)
	if !final {
		e, err := settleVerb.DoAt(ctx, d, t.partition(), endArgs{id: t.Batch, handler: t.Handler, key: t.Key, how: "fail", epoch: t.Epoch, message: message, delay: delay})
		if err != nil || e.applied {
			return e, err
		}
		if (e.State == "waiting" || e.State == "failed") && e.epoch == t.Epoch && e.Failures > t.Failures { // it is said already that it failed
			return e, nil
		}
		if !e.last {
			return e, left(ctx, d, t, e)
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
	case g.applied: // there may be enough for others now
		_, err := resume(ctx, d, t.partition(), "")
		return e, err
	case g.stuck && g.missing:
		return e, fault.New(fault.NotFound, "the item %q of the batch %q cannot be given up: there is no wallet to return to what it cost", t.Key, t.Batch)
	case g.stuck:
		return e, fault.New(fault.Conflict, "the item %q of the batch %q cannot be given up: its wallet has no room for what it cost", t.Key, t.Batch)
	case g.state == "failed" && g.epoch == t.Epoch && how == "fail" && g.failures > t.Failures:
		return e, nil // it was, by this very hold
	}
	return e, left(ctx, d, t, e)
}

// Release gives an item back untouched, due after the delay.
func Release(ctx context.Context, d store.Doer, t Taken, delay time.Duration) error {
	e, err := settleVerb.DoAt(ctx, d, t.partition(), endArgs{id: t.Batch, handler: t.Handler, key: t.Key, how: "release", epoch: t.Epoch, delay: delay})
	if err == nil && !e.applied {
		err = left(ctx, d, t, e)
	}
	return err
}

// Renew extends a hold, at most until the item's timeout, or returns [fault.LeaseLost]. To a
// holder whose item was cancelled under it, it says CancelRequested.
func Renew(ctx context.Context, d store.Doer, t Taken, lease time.Duration) (Renewed, error) {
	all, err := renewVerb.DoAt(ctx, d, t.partition(), renewArgs{leasedArgs{t.Batch, t.Key, t.Epoch}, lease})
	return store.First(all, err, func() error { return lost(t) })
}

func closeAt(ctx context.Context, d store.Doer, at store.Partition, id string, over bool) error {
	if !over {
		return nil
	}
	_, err := closeVerb.DoAt(ctx, d, at, moveArgs{id: id})
	return err
}

// sweepLimit is how much one sweep does at the most.
const sweepLimit = 500

// Expire ends the holds that have run out, each as a death of its holder, or as a hand-out that
// was lost, and returns how many: in a workspace, or in all on a shard.
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
		if fault.CodeOf(err) != fault.LeaseLost { // another has freed it
			failed = errors.Join(failed, err)
		}
		if e.applied {
			freed++
		}
	}
	return freed, failed
}
