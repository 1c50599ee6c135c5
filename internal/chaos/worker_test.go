package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// lease is the lease of workers.
const lease = 2 * time.Second

// policies are the declarations of the handlers. Pay… are actions, Step… are steps of runs.
var policies = map[string]wire.PutHandler{
	"PayHold":    {Safety: "journaled", OnUnknown: "hold"},
	"PayRetry":   {Safety: "journaled", OnUnknown: "retry"},
	"PayProbe":   {Safety: "journaled", OnUnknown: "probe"},
	"PayOpaque":  {Safety: "opaque", OnUnknown: "hold"},
	"PayAsk":     {Safety: "opaque", OnUnknown: "probe"},
	"StepHold":   {Safety: "journaled", OnUnknown: "hold"},
	"StepRetry":  {Safety: "journaled", OnUnknown: "retry"},
	"StepProbe":  {Safety: "journaled", OnUnknown: "probe"},
	"StepOpaque": {Safety: "opaque", OnUnknown: "hold"},
	"Note":       {Safety: "idempotent"},
	"Scan":       {Safety: "idempotent"},
	"Mail":       {Safety: "idempotent"},
	"Receipt":    {Safety: "idempotent"},
}

// workerSpec is the configuration of a worker process. Workers of earlier revisions read it too.
type workerSpec struct {
	program     string // "" means this one
	Name, Start string // its name, and the name of this start
	Ledger      string
	World       string
	Servers     []string
	Key         string
	Quick       bool // runs workQuickly
	Holds       bool // with Quick: only renews its tasks
}

// worker executes tasks, handles a reaction manually, and claims entities manually.
type worker struct {
	workerSpec
	*caller
	world  *worldClient
	ledger *ledger
}

// work is a worker process. It first reports the calls that it had not reported when it was killed.
func work(ctx context.Context, spec workerSpec) error {
	c, err := newCaller(spec.Servers, spec.Key)
	if err != nil {
		return err
	}
	l, open, err := openLedger(spec.Ledger)
	if err != nil {
		return err
	}
	w := &worker{workerSpec: spec, caller: c, world: &worldClient{url: spec.World}, ledger: l}
	var all sync.WaitGroup
	all.Go(func() {
		for _, x := range open {
			w.recover(ctx, x)
		}
		_, _ = w.world.post("/recovered?worker="+url.QueryEscape(spec.Start), nil)
	})
	for _, loop := range []func(context.Context){w.tasks, w.tasks, w.follow, w.byHand} {
		all.Go(func() {
			for ctx.Err() == nil {
				loop(ctx)
			}
		})
	}
	all.Wait()
	return nil
}

// entry is a line of a worker's ledger, written before an external call and after its result was
// reported.
type entry struct {
	Call     string `json:"call"`
	Reported bool   `json:"reported,omitempty"`
	Task     string `json:"task,omitempty"`  // id of the task, or
	Token    string `json:"token,omitempty"` // token of the claim
	Epoch    int64  `json:"epoch,omitempty"`
	Opaque   bool   `json:"opaque,omitempty"`
}

// ledger is an append-only file.
type ledger struct {
	mu   sync.Mutex
	file *os.File
}

// openLedger opens a ledger and returns its unreported calls.
func openLedger(path string) (*ledger, []entry, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	var open []entry
	reported := make(map[string]bool)
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // killed while it wrote this line, before the call
		}
		if e.Reported {
			reported[e.Call] = true
		} else {
			open = append(open, e)
		}
	}
	left := open[:0]
	for _, e := range open {
		if !reported[e.Call] {
			left = append(left, e)
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &ledger{file: file}, left, err
}

// write adds a line. The leading newline terminates a line that was truncated by a kill.
func (l *ledger) write(e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.file.Write([]byte("\n" + string(text) + "\n"))
	return err
}

// recover checks whether a call was made before the kill, and reports it.
func (w *worker) recover(ctx context.Context, e entry) {
	a, err := w.world.post("/called?call="+url.QueryEscape(e.Call), nil)
	if err == nil && a.Ref != "" {
		err = w.report(ctx, e, a.Ref)
	}
	if err == nil && ctx.Err() == nil {
		_ = w.ledger.write(entry{Call: e.Call, Reported: true})
	}
}

// pauseBriefly pauses, so that a worker may be stopped here.
func pauseBriefly(ctx context.Context) { pause(ctx, time.Duration(rand.IntN(40))*time.Millisecond) }

// pay makes an external call if the lease cannot have expired by the clock of this process, and
// reports its result, even if it is late.
func (w *worker) pay(ctx context.Context, taken time.Time, c charge, e entry) error {
	c.Call, c.Worker = fmt.Sprintf("%s/%d", w.Start, rand.Int64()), w.Name
	if e.Call = c.Call; time.Since(taken) > lease {
		return fault.New(fault.LeaseLost, "the lease may have expired")
	}
	if err := w.ledger.write(e); err != nil {
		return err
	}
	if pauseBriefly(ctx); rand.IntN(4) == 0 { // a worker that is stopped here calls too late
		pause(ctx, 300*time.Millisecond)
	}
	a, err := w.world.post("/charge", c)
	if err != nil {
		return err
	}
	pauseBriefly(ctx)
	if err := w.report(ctx, e, a.Ref); err != nil {
		return err
	}
	return w.ledger.write(entry{Call: e.Call, Reported: true})
}

// report reports a call to the server until the response is conclusive. A lost lease is
// conclusive too.
func (w *worker) report(ctx context.Context, e entry, ref string) error {
	result, _ := json.Marshal(ref)
	effect := wire.EffectCall{Name: "charge", Epoch: e.Epoch, Result: result}
	_, err := request(ctx, w.caller, func(ctx context.Context, c api, _ ...client.Option) (any, error) {
		switch {
		case e.Token != "":
			effect.Epoch = 0
			return c.JournalEffect(ctx, e.Token, effect)
		case e.Opaque:
			return c.CompleteTask(ctx, e.Task, wire.CompleteTask{Epoch: e.Epoch, Output: result})
		}
		return c.JournalTaskEffect(ctx, e.Task, effect)
	})
	if conclusive(err) {
		return nil
	}
	return err
}

// tasks claims tasks and executes them.
func (w *worker) tasks(ctx context.Context) {
	handlers := make([]string, 0, len(policies))
	for name := range policies {
		handlers = append(handlers, name)
	}
	taken := time.Now()
	wait := wire.Millis(500)
	got, err := request(ctx, w.caller, func(ctx context.Context, c api, _ ...client.Option) (wire.Tasks, error) {
		taken = time.Now()
		return c.ClaimTasks(ctx, wire.ClaimTasks{Worker: w.Name, Handlers: handlers, Limit: 6, WaitMs: &wait, LeaseMs: wire.Ms(lease)})
	})
	if err != nil {
		return
	}
	var all sync.WaitGroup
	for _, t := range got.Tasks {
		all.Go(func() { w.do(ctx, taken, t) })
	}
	all.Wait()
}

// subjectOf returns the subject of a task, in the form of operations.
func subjectOf(t wire.Task) string {
	if t.Context.Entity != nil {
		return t.Context.Entity.Lifecycle + "/" + t.Context.Entity.ID
	}
	return "run " + t.Context.Run + " step " + t.Context.Step
}

func (w *worker) do(ctx context.Context, taken time.Time, t wire.Task) {
	p := policies[t.Handler]
	if pauseBriefly(ctx); t.Attempt == 1 && t.Kind != "afterEffect" && p.Safety != "opaque" && rand.IntN(20) == 0 {
		_, _ = request(ctx, w.caller, with2(api.FailTask, t.ID, wire.FailTask{Epoch: t.Epoch, Message: "not today"}))
		return
	}
	var err error
	out := json.RawMessage(`{}`)
	switch {
	case t.Kind == "probe":
		out, err = w.probe(t)
	case p.Safety == "opaque": // the report completes the task
		_ = w.pay(ctx, taken, charge{Subject: subjectOf(t), Key: t.IdempotencyKey + "/$body/0"}, entry{Task: t.ID, Epoch: t.Epoch, Opaque: true})
		return
	case p.Safety == "journaled":
		err = w.journaled(ctx, taken, t, p)
	default:
		err = w.deliver(t)
	}
	if pauseBriefly(ctx); err == nil {
		_, _ = request(ctx, w.caller, with2(api.CompleteTask, t.ID, wire.CompleteTask{Epoch: t.Epoch, Output: out}))
	}
}

// probe checks whether an earlier call has happened.
func (w *worker) probe(t wire.Task) (json.RawMessage, error) {
	a, err := w.world.post("/happened?key="+url.QueryEscape(t.IdempotencyKey+"/$body/0"), nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"happened": a.Ref != "", "result": a.Ref})
}

// journaled journals the intent of a call and makes the call.
func (w *worker) journaled(ctx context.Context, taken time.Time, t wire.Task, p wire.PutHandler) error {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	begin := client.Key(fmt.Sprintf("%s/%d/begin", t.IdempotencyKey, t.Epoch))
	x, err := request(ctx, w.caller, with2(api.JournalTaskEffect, t.ID, wire.EffectCall{Epoch: t.Epoch, Name: "charge"}), begin)
	if err != nil || x.State == "done" {
		return err
	}
	e := entry{Task: t.ID, Epoch: t.Epoch}
	if p.OnUnknown == "probe" {
		a, err := w.world.post("/happened?key="+url.QueryEscape(x.Key), nil)
		if err != nil {
			return err
		}
		if a.Ref != "" {
			return w.report(context.WithoutCancel(ctx), e, a.Ref)
		}
	}
	return w.pay(context.WithoutCancel(ctx), taken, charge{Subject: subjectOf(t), Key: x.Key, Honors: p.OnUnknown == "retry"}, e)
}

// deliver records the execution of an idempotent task in the world.
func (w *worker) deliver(t wire.Task) error {
	d := delivery{To: t.Handler}
	switch {
	case t.Context.Event != nil && t.Kind == "reaction":
		d.Stream, d.Version = t.Context.Event.Stream, t.Context.Event.Version
	case t.Context.Entity != nil:
		d.Stream = t.Context.Entity.ID
	case t.Context.Batch != "":
		d.Stream = t.Context.Batch + "/" + t.Context.Item
	default:
		d.Stream = t.Context.Run
	}
	_, err := w.world.post("/deliver", d)
	return err
}

// follow leases streams of the reaction that is handled manually.
func (w *worker) follow(ctx context.Context) {
	got, err := request(ctx, w.caller, with2(api.ClaimLeases, "watch", wire.ClaimLeases{By: w.Name, Limit: 2, LeaseMs: wire.Ms(lease), WaitMs: 500}))
	if err != nil {
		return
	}
	for _, l := range got.Leases {
		if rand.IntN(20) == 0 {
			_, _ = request(ctx, w.caller, with2(api.FailLease, "watch", wire.FailLease{Stream: l.Stream, Epoch: l.Epoch, Token: l.Token, Message: "not today"}))
			continue
		}
		pauseBriefly(ctx)
		last := int64(-1)
		for _, e := range l.Events[:min(len(l.Events), 20)] {
			if _, err := w.world.post("/deliver", delivery{To: "watch", Stream: e.Stream, Version: e.Version}); err != nil {
				break
			}
			last = e.Version
		}
		if last >= 0 {
			_, _ = request(ctx, w.caller, with2(api.AckLeases, "watch", wire.Acks{Acks: []wire.Ack{{Stream: l.Stream, Epoch: l.Epoch, Token: l.Token, Version: last}}}))
		}
	}
}

// byHand claims an open entity, pays, and settles the claim.
func (w *worker) byHand(ctx context.Context) {
	open, err := request(ctx, w.caller, with3(api.ListEntitiesPage, "desk", client.EntityFilter{Status: "open"}, client.Page{Limit: 20}))
	if err != nil || len(open.Items) == 0 {
		pause(ctx, 300*time.Millisecond)
		return
	}
	id := open.Items[rand.IntN(len(open.Items))].ID
	key := client.Key(fmt.Sprintf("claim/%s/%d", w.Start, rand.Int64()))
	short, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	taken := time.Now()
	claimed, err := request(short, w.caller, with3(api.ClaimStep, "desk", id, wire.NewClaim{StepKey: "serve", Requester: "hand", LeaseMs: wire.Ms(lease)}), key)
	if err != nil {
		return
	}
	token := claimed.Claim.Token
	x, err := request(short, w.caller, with2(api.JournalEffect, token, wire.EffectCall{Name: "charge"}), client.Key(token+"/begin"))
	if err == nil {
		err = w.pay(ctx, taken, charge{Subject: "desk/" + id, Key: x.Key}, entry{Token: token, Epoch: claimed.Claim.Epoch})
	}
	if err != nil {
		return
	}
	data, _ := json.Marshal(map[string]string{"id": id})
	_, err = request(ctx, w.caller, with2(api.SettleClaim, token, wire.Settle{Outcome: "success", Events: []wire.SettleEvent{{Stream: "s-desk", Name: "served", Data: data}}}))
	if err == nil {
		_, _ = w.world.post("/deliver", delivery{To: "settled", Stream: id})
	}
}
