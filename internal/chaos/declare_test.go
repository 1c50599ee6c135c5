package chaos

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

// lifecycles are the configs. Workers pay orders, each requester with another policy; desks are
// claimed manually; runs book tickets.
var lifecycles = map[string]string{
	"order": `{"workflow": "order", "owning_module": "shop", "initial_status": "open", "status_types": ["open", "paying", "paid"], "janitor": {"stuck_after": "5s"},
  "steps": [{"step_id": 1, "step_key": "pay", "status": "open", "successful_claim_state": ["paying", "open"], "successful_state": "paid", "success_after_effect": "Receipt",
    "action": {"hold": "PayHold", "retry": "PayRetry", "probe": "PayProbe", "opaque": "PayOpaque", "ask": "PayAsk"}}]}`,
	"desk": `{"workflow": "desk", "owning_module": "shop", "initial_status": "open", "status_types": ["open", "serving", "served"], "janitor": {"stuck_after": "5s"},
  "steps": [{"step_id": 1, "step_key": "serve", "status": "open", "successful_claim_state": {"hand": ["serving", "open"]}, "successful_state": {"hand": "served"}}]}`,
	"ticket": `{"workflow": "ticket", "owning_module": "shop", "initial_status": "new", "status_types": ["new", "booked"],
  "steps": [{"step_id": 1, "step_key": "book", "status": "new", "successful_state": "booked"}]}`,
}

// chase is the workflow. Its argument is the policy of the step pay.
const chase = `{"name": "chase%[1]s", "version": "1", "steps": [
  {"name": "pay", "type": "task", "handler": "Step%[1]s", "retry": {"maxAttempts": 10, "backoffMs": 100}},
  {"name": "paid", "type": "event", "signal": "payment"},
  {"name": "nap", "type": "wait", "durationMs": 30},
  {"name": "ask", "type": "approval", "prompt": "Book it?"},
  {"name": "book", "type": "transition", "lifecycle": "ticket", "entity": "=input.ticket", "stepKey": "book", "requester": "system"},
  {"name": "note", "type": "task", "handler": "Note", "retry": {"maxAttempts": 10, "backoffMs": 100}}]}`

// declare creates the handlers, lifecycles, workflows, reactions and wallets before faults begin.
func (r *rig) declare() *load {
	t := r.t
	t.Helper()
	c, err := newCaller(r.urls, r.key)
	if err != nil {
		t.Fatal(err)
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	admin := c.clients[0]
	for name, h := range policies {
		h.Kind = "worker"
		must(admin.PutHandler(t.Context(), name, h))
	}
	for name, config := range lifecycles {
		must(admin.PutLifecycle(t.Context(), name, json.RawMessage(config)))
	}
	for _, policy := range []string{"Hold", "Retry", "Probe", "Opaque"} {
		must(admin.PutDefinition(t.Context(), json.RawMessage(fmt.Sprintf(chase, policy))))
	}
	many := 1000
	soon := &wire.Backoff{Kind: "fixed", BaseMs: 50, MaxMs: 50}
	must(admin.PutReaction(t.Context(), "watch", wire.PutReaction{Events: []string{"*"}, Streams: "^s-", MaxRetries: &many, MaxDeaths: &many, Backoff: soon}))
	must(admin.PutReaction(t.Context(), "mail", wire.PutReaction{Events: []string{"*"}, Streams: "^s-", MaxRetries: &many, MaxDeaths: &many, Backoff: soon, Handler: "Mail"}))
	for i := range 3 {
		must(admin.PutWallet(t.Context(), fmt.Sprint("w-", i), wire.PutWallet{}))
	}
	key, err := admin.CreateKey(t.Context(), wire.NewKey{Role: "operate", Requesters: []string{"*"}})
	must(key, err)
	if c, err = newCaller(r.urls, key.Secret); err != nil {
		t.Fatal(err)
	}
	return &load{caller: c, opLog: newOpLog()}
}

// workerKey creates an API key for workers.
func (r *rig) workerKey() string {
	r.t.Helper()
	c, err := client.New(r.urls[0], client.Options{APIKey: r.key})
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := c.CreateKey(r.t.Context(), wire.NewKey{Role: "worker", Requesters: []string{"hand"}})
	if err != nil {
		r.t.Fatal(err)
	}
	return key.Secret
}
