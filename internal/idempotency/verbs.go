package idempotency

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// found is a request as a verb found or wrote it, with the fields that the verb returns.
type found struct {
	applied bool
	Request
}

type endArgs struct {
	Lease
	how                string
	status             int
	answer             string
	operation, subject string
}

type recordArgs struct {
	key, fingerprint string
	status           int
	answer           string
	ttl              time.Duration
}

type renewArgs struct {
	Lease
	lease time.Duration
}

var (
	takeVerb = store.NewVerb(store.Decl{Name: "idempotency.take", Idempotent: true},
		func(a TakeArgs) []string { return []string{row(a.Key)} },
		func(a TakeArgs, args *store.Args) {
			args.Text("key", a.Key)
			args.Text("fingerprint", a.Fingerprint)
			args.Text("holder", a.Holder)
			args.Int("lease", a.Lease.Milliseconds())
			args.Int("ttl", cmp.Or(a.TTL, TTL).Milliseconds())
		},
		func(t *found, r store.Row) error {
			t.applied = r.Applied()
			return scan(&t.Request, r)
		})
	// probe and record are only used before and after a write, by [store.InPair], and grouped there.
	probeVerb = store.NewVerb(store.Decl{Name: "idempotency.probe", Idempotent: true},
		func(key string) []string { return []string{row(key)} },
		func(key string, args *store.Args) { args.Text("key", key) },
		store.ScanValue[int])
	recordVerb = store.NewVerb(store.Decl{Name: "idempotency.record"},
		func(a recordArgs) []string { return []string{row(a.key)} },
		func(a recordArgs, args *store.Args) {
			args.Text("key", a.key)
			args.Text("fingerprint", a.fingerprint)
			args.Int("status", int64(a.status))
			args.MaybeText("answer", a.answer)
			args.Int("ttl", cmp.Or(a.ttl, TTL).Milliseconds())
		},
		store.ScanValue[int])
	settleVerb = store.NewVerb(store.Decl{Name: "idempotency.settle", Idempotent: true},
		func(a endArgs) []string { return []string{row(a.Key)} }, bindEnd,
		func(e *found, r store.Row) error {
			var answer string
			e.applied = r.Applied()
			err := r.Scan((*string)(&e.State), &e.Epoch, &e.Operation, &e.Subject, &e.Status, &answer)
			e.Answer = []byte(answer)
			return err
		})
	updateOperationVerb = store.NewVerb(store.Decl{Name: "idempotency.update_operation", Idempotent: true},
		func(a RepointArgs) []string { return []string{row(a.Key)} },
		func(a RepointArgs, args *store.Args) {
			args.Text("key", a.Key)
			args.Text("fingerprint", a.Fingerprint)
			args.Text("was", a.From)
			args.Text("operation", a.Operation)
			args.MaybeText("subject", a.Subject)
			args.Int("ttl", cmp.Or(a.TTL, TTL).Milliseconds())
		},
		func(p *found, r store.Row) error {
			p.applied = r.Applied()
			return r.Scan((*string)(&p.State), &p.Fingerprint, &p.Operation, &p.Subject)
		})
	releaseVerb = store.NewVerb(store.Decl{Name: "idempotency.release", Idempotent: true},
		func(h Lease) []string { return []string{row(h.Key)} },
		func(h Lease, args *store.Args) { args.Text("key", h.Key); args.Int("epoch", h.Epoch) },
		func(n *int64, r store.Row) error { return r.Scan(n) })
	// A renewal uses the vital lane: behind other work it might come too late.
	renewVerb = store.NewVerb(store.Decl{Name: "idempotency.renew", Lane: store.Vital}, nil,
		func(a renewArgs, args *store.Args) {
			args.Text("key", a.Key)
			args.Int("epoch", a.Epoch)
			args.Int("lease", a.lease.Milliseconds())
		},
		func(until *time.Time, r store.Row) error { return r.Scan(until) })
	getVerb = store.NewVerb(store.Decl{Name: "idempotency.get", Lane: store.Read}, nil,
		func(key string, args *store.Args) { args.Text("key", key) }, scan)
	pruneVerb = store.NewVerb(store.Decl{Name: "idempotency.prune", Lane: store.Work}, nil,
		func(limit int, args *store.Args) { args.Int("limit", int64(limit)) },
		func(n *int, r store.Row) error {
			var one int
			*n++
			return r.Scan(&one)
		})
)

// row returns the name of a request's row, for verbs that lock it.
func row(key string) string { return "request/" + key }

func bindEnd(a endArgs, args *store.Args) {
	args.Text("key", a.Key)
	args.Int("epoch", a.Epoch)
	args.Text("how", a.how)
	args.Int("status", int64(a.status))
	args.MaybeText("answer", a.answer)
	args.MaybeText("operation", a.operation)
	args.MaybeText("subject", a.subject)
	args.Int("ttl", cmp.Or(a.TTL, TTL).Milliseconds())
}

func scan(q *Request, r store.Row) error {
	var answer string
	var ms int64
	err := r.Scan(&q.Fingerprint, (*string)(&q.State), &q.Holder, &q.Epoch, &q.Until, &q.Operation, &q.Subject, &q.Status, &answer, &q.CreatedAt, &ms)
	if answer != "" {
		q.Answer = []byte(answer)
	}
	if q.State != Held && !q.Answerless() {
		q.Until, ms = time.Time{}, 0
	}
	q.RetryAfter = time.Duration(ms) * time.Millisecond
	return err
}
