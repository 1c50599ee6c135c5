package demo

import (
	"context"
	_ "embed" // the config of the invoices
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

//go:embed invoice.json
var config []byte

// invoice is the data of an invoice.
type invoice struct {
	Cents   int64  `json:"cents"`
	Keyless bool   `json:"keyless"` // its gateway ignores idempotency keys
	Receipt string `json:"receipt,omitempty"`
}

// shop is the lifecycle of the invoices with its handlers. The server and the callers that
// are killed both use it.
type shop struct {
	invoices *lifecycle.Lifecycle[invoice]
	engine   *holdfast.Engine

	mu         sync.Mutex
	executions map[string]int                             // in this process, by invoice
	closer     map[string]func(ctx context.Context) error // called during the close action, by invoice
	// charged is called right after a charge, if it is not nil.
	charged func(ctx context.Context) error
}

func newShop() *shop {
	s := &shop{executions: make(map[string]int), closer: make(map[string]func(context.Context) error)}
	s.invoices = lifecycle.MustParse[invoice](config).InWorkspaces(Workspace, Home).
		Action("CloseInvoice", s.close, lifecycle.Transactional()).
		Action("ChargeCard", s.charge, lifecycle.Journaled()).
		AfterEffect("MailInvoice", s.mail, lifecycle.Transactional())
	return s
}

// Register registers the lifecycle. [holdfast.Open] calls it.
func (s *shop) Register(ctx context.Context, e *holdfast.Engine) error {
	s.engine = e
	return s.invoices.Register(ctx, e)
}

// close is the action that closes an invoice. It calls the function set by meanwhile.
func (s *shop) close(ctx context.Context, a *lifecycle.Act[invoice]) error {
	if middle := s.begin(a.Entity.ID); middle != nil {
		return middle(ctx)
	}
	return nil
}

// begin counts an execution and returns the function to call during it.
func (s *shop) begin(id string) func(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executions[id]++
	return s.closer[id]
}

// meanwhile sets the function that the close action of an invoice calls.
func (s *shop) meanwhile(id string, f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closer[id] = f
}

// ran returns the number of executions for an invoice in this process.
func (s *shop) ran(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executions[id]
}

// charge charges the card. A gateway that recognizes keys can be retried after a crash; with
// a keyless one the operation becomes uncertain, and a person resolves it.
func (s *shop) charge(ctx context.Context, a *lifecycle.Act[invoice]) error {
	s.begin(a.Entity.ID)
	data := a.Entity.Data
	var o []holdfast.EffectOption
	if !data.Keyless {
		o = append(o, holdfast.OnUnknownRetry())
	}
	receipt, err := holdfast.Effect(ctx, "charge-card", func(ctx context.Context, key string) (string, error) {
		g := gatewayOf(s.engine, a.Entity.ID)
		g.correlation, g.causation = a.Operation, cause(a)
		receipt, err := g.charge(ctx, key, data)
		if err == nil && s.charged != nil {
			err = s.charged(ctx)
		}
		return receipt, err
	}, o...)
	if err != nil {
		return err
	}
	data.Receipt = receipt
	return a.Set(data)
}

// letter is the record of a sent mail.
type letter struct {
	Invoice   string `json:"invoice"`
	Operation string `json:"operation"`
}

// mail is the after-effect of a close. Its record is written in the transaction that
// acknowledges the event, so it is written once.
func (s *shop) mail(_ context.Context, a *lifecycle.Act[invoice]) error {
	data, err := json.Marshal(letter{a.Entity.ID, a.Operation})
	if err != nil {
		return err
	}
	a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, mailbox(a.Entity.ID), stream.Any, stream.Event{Name: "sent", Data: data, Correlation: a.Operation, Causation: cause(a)})
		return err
	})
	return nil
}

// cause names the event of an invoice that a handler acts on.
func cause(a *lifecycle.Act[invoice]) string {
	return eventID("$entity/invoice/"+a.Entity.ID, stream.Version(a.Entity.Version))
}

// eventID names an event as the causation of others.
func eventID(name string, version stream.Version) string { return fmt.Sprintf("%s/%d", name, version) }

// mailbox returns the stream of the mails of a demo run.
func mailbox(id string) string { return "mail-" + runOf(id) }

func runOf(id string) string {
	run, _, _ := strings.Cut(id, "-")
	return run
}
