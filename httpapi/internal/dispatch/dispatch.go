// Package dispatch calls handlers that are URLs: for steps of lifecycles, events of reactions,
// items of batches and steps of runs.
package dispatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/claimtoken"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/sameorigin"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/run/httpcall"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

// Part is the part of an engine that calls URL handlers.
type Part struct {
	SecretKeys [][]byte
	Policy     egress.Policy
	Tables     map[string]lifecycleengine.EntityTable // user tables that published lifecycles may name
}

type partKey struct{}

// same reports whether two parts call handlers in the same way.
func (p Part) same(q Part) bool {
	return slices.EqualFunc(p.SecretKeys, q.SecretKeys, bytes.Equal) && slices.Equal(p.Policy.Allow, q.Policy.Allow) && reflect.DeepEqual(p.Tables, q.Tables)
}

// Register implements [holdfast.Part]. Each API of an engine registers it, and the first one calls the handlers.
func (p Part) Register(ctx context.Context, hf *holdfast.Engine) error {
	e := engine.Of(hf)
	first := false
	if known := e.Shared(partKey{}, func() any { first = true; return p }).(Part); !first {
		if !p.same(known) {
			return fault.New(fault.Validation, "all APIs of an engine must have the same SecretKeys, AllowPrivate and EntityTables, because they share the calls of handlers")
		}
		return nil
	}
	c := &caller{engine: e, client: p.Policy.Client()}
	if len(p.SecretKeys) > 0 {
		var err error
		if c.box, err = seal.New(p.SecretKeys...); err != nil {
			return err
		}
		secrets.Provide(e, c.box)
	}
	s := &urlDispatcher{caller: c, worker: reactions.CallingWorker(e), served: make(map[handledKey]reactions.Definition)}
	e.Background(s.learn)
	e.Learns(s.poll) // Learns and Steps add the loops for tests that step them: holdfasttest.Settle
	items := &batchengine.Worker{Engine: e, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Kind: "http", Topics: []string{batchengine.Made, urlsLearned}, MaxConcurrency: calledAtOnce, ByHandler: true,
		Handlers: s.urls, Body: s.item}
	e.Background(items.Run)
	e.Steps(items.WorkKinds, items.Step)
	batchengine.CleanupOf(e).CallURL = s.undo
	steps := newStepper(s)
	e.Background(steps.run)
	if c.box != nil {
		e.Steps(steps.workKinds, steps.stepOnce)
	}
	if !runengine.LocalOf(e).Has(runengine.CallHandler) { // the program may have its own
		if err := run.Calls(httpcall.With(p.Policy.Guarded())).Register(ctx, hf); err != nil {
			return err
		}
	}
	if err := batch.Maintenance().Register(ctx, hf); err != nil {
		return err
	}
	return lifecycleengine.ServePublished(ctx, e, c.call, p.Tables)
}

// NoBox returns the error for a secret that cannot be encrypted because there is no key.
func NoBox() error {
	return fault.New(fault.Unavailable, "secrets cannot be stored: start the server with an encryption key (HOLDFAST_SECRET_KEY)")
}

// caller calls handlers.
type caller struct {
	engine  *engine.Engine
	client  *http.Client
	box     *seal.Box
	signers claimtoken.Keyring
}

// maxHandlerAnswer is the maximum size of a handler's response.
const maxHandlerAnswer = 1 << 20

// call calls a handler for a lifecycle.
func (c *caller) call(ctx context.Context, x lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
	call := callOf(x.Task)
	if x.Kind == "action" && x.To.Safety == "journaled" {
		call.Token = claimtoken.New()
		if err := claimtoken.Put(ctx, c.engine, call.Token, claimtoken.Claim{Lifecycle: x.Lifecycle, Entity: x.Entity.ID, Operation: x.Operation, Epoch: x.Epoch, Requester: x.Requester}); err != nil {
			return lifecycleengine.RemoteAnswer{}, err
		}
	}
	return c.send(ctx, x.To, call)
}

// callOf converts a task to the body of a call.
func callOf(t remote.Task) wire.HandlerCall {
	call := wire.HandlerCall{Kind: t.Kind, Attempt: t.Attempt, IdempotencyKey: t.Operation, Input: t.Input, StepKey: t.StepKey, Requester: t.Requester,
		Reaction: t.Reaction, Batch: t.Batch, Item: t.Item, ArtifactPrefix: t.ArtifactPrefix, ItemStatus: t.ItemStatus, Output: t.Output, Run: t.Run, Step: t.Step, Visit: t.Visit, State: t.State, RunInput: t.RunInput}
	if t.Entity != nil {
		call.Entity = new(shapes.Entity(t.Lifecycle, lifecycleengine.Public(*t.Entity)))
	}
	if t.Event != nil {
		call.Event = new(shapes.Event(*t.Event))
	}
	return call
}

// send calls a handler and classifies every result. A refusal by the handler is its answer. Any
// other error after the call was sent leaves it open whether the handler has acted.
func (c *caller) send(ctx context.Context, h remotehandler.Handler, call wire.HandlerCall) (lifecycleengine.RemoteAnswer, error) {
	opened, err := c.open(ctx, h)
	if err != nil {
		return lifecycleengine.RemoteAnswer{}, err
	}
	r, err := c.request(ctx, h, call, opened)
	if err != nil {
		return lifecycleengine.RemoteAnswer{}, err
	}
	a, err := egress.Do(sameorigin.Client(c.client, slices.Collect(maps.Keys(opened.Headers))), r, maxHandlerAnswer)
	a.Body = opened.Redact.Body(a.Body)
	err = redacted(&opened.Redact, err)
	switch {
	case fault.CodeOf(err) == fault.Forbidden && !a.Sent:
		return lifecycleengine.RemoteAnswer{}, holdfast.NonRetryable(err) // it was not sent
	case err != nil:
		return lifecycleengine.RemoteAnswer{}, noResponse(err)
	}
	return readAnswer(a)
}

// redacted returns the error without the values of secrets, which a redirect could have put into it.
func redacted(r *secretref.Redactor, err error) error {
	clean, changed := r.Error(err)
	if f, ok := errors.AsType[*fault.Error](err); ok && changed {
		return fault.New(f.Code, "%s", r.Text(f.Message))
	}
	return clean
}

func noResponse(err error) error {
	return fault.New(fault.Unavailable, "%s", err).Wrap(lifecycleengine.ErrNoResponse)
}

// readAnswer converts an HTTP response to the handler's answer.
func readAnswer(a egress.Answer) (lifecycleengine.RemoteAnswer, error) {
	var body wire.HandlerAnswer
	if len(bytes.TrimSpace(a.Body)) > 0 {
		if err := json.Unmarshal(a.Body, &body); err != nil && a.Status < 300 {
			return lifecycleengine.RemoteAnswer{}, noResponse(fault.New(fault.Unavailable, "the handler's response body is invalid: %s", err))
		}
	}
	if body.Message == "" {
		body.Message = http.StatusText(a.Status)
	}
	switch {
	case a.Status >= 200 && a.Status < 300:
		return lifecycleengine.RemoteAnswer{State: body.State, Output: body.Output, Reported: body.Happened != nil, Happened: body.Happened != nil && *body.Happened}, nil
	case a.Status == http.StatusUnprocessableEntity:
		return lifecycleengine.RemoteAnswer{}, holdfast.Invalid(body.Message)
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout:
		return lifecycleengine.RemoteAnswer{}, fault.New(fault.ActionFailed, "the handler responded with status %d: %s", a.Status, body.Message)
	case a.Status >= 400 && a.Status < 500:
		return lifecycleengine.RemoteAnswer{}, holdfast.NonRetryable(fault.New(fault.ActionFailed, "the handler responded with status %d: %s", a.Status, body.Message))
	}
	return lifecycleengine.RemoteAnswer{}, noResponse(fault.New(fault.Unavailable, "the handler responded with status %d: %s", a.Status, body.Message))
}

// open opens the secrets of a call. Its errors say that nothing was sent.
func (c *caller) open(ctx context.Context, h remotehandler.Handler) (secrets.Opened, error) {
	if c.box == nil {
		return secrets.Opened{}, holdfast.NonRetryable(NoBox())
	}
	opened, err := secrets.Open(ctx, c.engine, c.box, h.Headers, secrets.Signer{Stored: h.Secret, Bound: []string{"handler", store.WorkspaceOf(ctx), h.Name}})
	switch fault.CodeOf(err) {
	case fault.DatabaseDamaged: // its own secret
		return opened, holdfast.NonRetryable(err)
	case fault.SecretUnavailable: // with the code: some callers record only the message of an error
		return opened, fmt.Errorf("handler %q was not called: %w", h.Name, err)
	}
	return opened, err
}

// request builds the signed request.
func (c *caller) request(ctx context.Context, h remotehandler.Handler, call wire.HandlerCall, opened secrets.Opened) (*http.Request, error) {
	call.Handler = h.Name
	call.Input = remote.OrNull(call.Input)
	body, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, holdfast.NonRetryable(err)
	}
	for name, value := range opened.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	key := call.IdempotencyKey + "/" + call.Kind
	if len(key) > 255 || strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 { // stream names may be long and contain any character
		sum := sha256.Sum256([]byte(key))
		key = hex.EncodeToString(sum[:])
	}
	r.Header.Set(idempotency.KeyHeader, key)
	return r, webhook.Sign(r.Header, "op_"+strings.Map(plainID, key), clock.Now(), body, opened.Signing...)
}

// plainID replaces characters that are not allowed in a message id.
func plainID(r rune) rune {
	if r == '.' || r == '/' || r <= ' ' || r > '~' {
		return '_'
	}
	return r
}
