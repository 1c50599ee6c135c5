package requests

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

type taken struct {
	applied bool
	Request
}

type endArgs struct {
	key       string        `arg:"key"`
	epoch     int64         `arg:"epoch"`
	how       string        `arg:"how"`
	status    int64         `arg:"status"`
	answer    string        `arg:"answer,null"`
	operation string        `arg:"operation,null"`
	subject   string        `arg:"subject,null"`
	ttl       time.Duration `arg:"ttl"` // 0 is [TTL]
}

// ended is a request as an end found it, or made it.
type ended struct {
	applied                           bool
	state, operation, subject, answer string
	epoch, status                     int64
}

type pointArgs struct {
	key         string        `arg:"key"`
	fingerprint string        `arg:"fingerprint"`
	from        string        `arg:"was"`
	operation   string        `arg:"operation"`
	subject     string        `arg:"subject,null"`
	ttl         time.Duration `arg:"ttl"` // 0 is [TTL]
}

type pointed struct {
	applied                                bool
	state, fingerprint, operation, subject string
}

type epochArgs struct {
	key   string `arg:"key"`
	epoch int64  `arg:"epoch"`
}

type renewArgs struct {
	epochArgs
	lease time.Duration `arg:"lease"`
}

var (
	takeVerb = store.VerbOf[TakeArgs](store.Decl{Name: "requests.take", Repeat: true},
		func(a TakeArgs) []string { return []string{row(a.Key)} },
		func(t *taken, r store.Row) error {
			t.applied = r.Applied()
			return scan(&t.Request, r)
		})
	endVerb = store.VerbOf[endArgs](store.Decl{Name: "requests.end", Repeat: true},
		func(a endArgs) []string { return []string{row(a.key)} },
		store.Outcome(func(e *ended) (*bool, []any) {
			return &e.applied, []any{&e.state, &e.epoch, &e.operation, &e.subject, &e.status, &e.answer}
		}))
	repointVerb = store.VerbOf[pointArgs](store.Decl{Name: "requests.repoint", Repeat: true},
		func(a pointArgs) []string { return []string{row(a.key)} },
		store.Outcome(func(p *pointed) (*bool, []any) {
			return &p.applied, []any{&p.state, &p.fingerprint, &p.operation, &p.subject}
		}))
	freeVerb = store.VerbOf[epochArgs](store.Decl{Name: "requests.free", Repeat: true},
		func(a epochArgs) []string { return []string{row(a.key)} }, store.ScanValue[int64])
	// A renewal goes the short way: behind other work it might come too late.
	renewVerb = store.VerbOf[renewArgs](store.Decl{Name: "requests.renew", Lane: store.Vital}, nil, store.ScanValues[time.Time])
	getVerb   = store.NewVerb(store.Decl{Name: "requests.get", Lane: store.Read}, nil, store.TextArg("key"),
		func(all *[]Request, r store.Row) error {
			var q Request
			err := scan(&q, r)
			*all = append(*all, q)
			return err
		})
	pruneVerb = store.NewVerb(store.Decl{Name: "requests.prune", Lane: store.Work}, nil, store.IntArg("limit"), store.CountRows)
)

func row(key string) string { return "request/" + key }

func scan(q *Request, r store.Row) error {
	var state, answer string
	var ms int64
	err := r.Scan(&q.Fingerprint, &state, &q.Holder, &q.Epoch, &q.Until, &q.Operation, &q.Subject, &q.Status, &answer, &q.CreatedAt, &ms)
	q.State = State(state)
	if answer != "" {
		q.Answer = []byte(answer)
	}
	if q.State != Held && !q.Answerless() {
		q.Until, ms = time.Time{}, 0
	}
	q.RetryAfter = time.Duration(ms) * time.Millisecond
	return err
}
