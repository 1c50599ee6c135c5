package demo

import (
	"context"
	_ "embed" // the config of the invoices
	"encoding/json"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

//go:embed invoice.json
var config []byte

// invoice is what an invoice of the demo is about.
type invoice struct {
	Cents   int64  `json:"cents"`
	Keyless bool   `json:"keyless"` // its gateway does not know a charge again by its key
	Receipt string `json:"receipt,omitempty"`
}

// shop is the lifecycle of the invoices with its handlers: in the server, and in
// the callers that are killed.
type shop struct {
	invoices *lifecycle.Lifecycle[invoice]
	engine   *holdfast.Engine

	mu     sync.Mutex
	bodies map[string]int                             // that ran in this process, by invoice
	closer map[string]func(ctx context.Context) error // what happens in the middle of a close, by invoice
	// charged is what happens right after a charge; nil is nothing.
	charged func(ctx context.Context) error
}

func newShop() *shop {
	s := &shop{bodies: make(map[string]int), closer: make(map[string]func(context.Context) error)}
	s.invoices = lifecycle.MustParse[invoice](config).In(Workspace).
		Action("CloseInvoice", s.close, lifecycle.Transactional()).
		Action("ChargeCard", s.charge, lifecycle.Journaled()).
		AfterEffect("MailInvoice", s.mail, lifecycle.Transactional())
	return s
}

// Start is called by [holdfast.Open].
func (s *shop) Start(ctx context.Context, e *holdfast.Engine) error {
	s.engine = e
	return s.invoices.Start(ctx, e)
}

// close is the work of closing an invoice: it takes as long as something takes.
func (s *shop) close(ctx context.Context, a *lifecycle.Act[invoice]) error {
	if middle := s.begin(a.Entity.ID); middle != nil {
		return middle(ctx)
	}
	return nil
}

// begin counts a body, and returns what happens in its middle.
func (s *shop) begin(id string) func(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[id]++
	return s.closer[id]
}

func (s *shop) meanwhile(id string, f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closer[id] = f
}

// ran is how often a body ran for an invoice in this process.
func (s *shop) ran(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[id]
}

// charge charges the card. A gateway that knows a charge again by its key may be
// asked again; of the other, a person must find out what happened.
func (s *shop) charge(ctx context.Context, a *lifecycle.Act[invoice]) error {
	s.begin(a.Entity.ID)
	data := a.Entity.Data
	var o []holdfast.EffectOption
	if !data.Keyless {
		o = append(o, holdfast.OnUnknownRetry())
	}
	receipt, err := holdfast.Effect(ctx, "charge-card", func(ctx context.Context, key string) (string, error) {
		receipt, err := gatewayOf(s.engine, a.Entity.ID).charge(ctx, key, data)
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

// letter is a mail that was sent.
type letter struct {
	Invoice   string `json:"invoice"`
	Operation string `json:"operation"`
}

// mail is what follows a close. That the mail was sent is written with the
// acknowledgement, so it is there once.
func (s *shop) mail(_ context.Context, a *lifecycle.Act[invoice]) error {
	data, err := json.Marshal(letter{a.Entity.ID, a.Operation})
	if err != nil {
		return err
	}
	a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, mailbox(a.Entity.ID), stream.Any, stream.Event{Name: "sent", Data: data})
		return err
	})
	return nil
}

// mailbox is the stream of a run's mails.
func mailbox(id string) string { return "mail-" + runOf(id) }

func runOf(id string) string {
	run, _, _ := strings.Cut(id, "-")
	return run
}
