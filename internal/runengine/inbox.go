package runengine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// Signal is something that a run is told. Its id is the sender's: the same id again is the
// same signal.
type Signal struct {
	Run, ID, Type string
	Payload       []byte
}

type signalled struct {
	applied      bool
	status, kind string
	payload      []byte
	version      int64
}

// Approval is what somebody is to decide, or has.
type Approval struct {
	ID, Run, Step        string
	Visit                int64
	Prompt               string
	Requesters           []string
	Status               string // pending, approved, rejected, edited, expired
	Actor, Label         string
	Content              []byte
	ExpiresAt            time.Time
	CreatedAt, DecidedAt time.Time
	past                 bool
}

// Decision decides an approval. Actor is who decides; label is what they want to be called.
type Decision struct {
	Decision, Actor, Label string
	Content                []byte
	// May says whether the actor may decide for one of some requesters; nil allows all.
	May func(requesters []string) error
}

// Decisions are those that there are.
var Decisions = []string{"approved", "rejected", "edited"}

type decideArgs struct {
	visited
	decision, actor, label string
	content                string
}

type decided struct {
	applied bool
	status  string
	version int64
}

type approvalsArgs struct {
	visited // behind it
	status  string
	limit   int
}

var (
	signalVerb = store.NewVerb(store.Decl{Name: "runs.signal", Events: store.HistoryEvents},
		func(a Signal) []string { return []string{row(a.Run)} },
		func(a Signal, args *store.Args) {
			args.Text("run", a.Run)
			args.Text("id", a.ID)
			args.Text("type", a.Type)
			args.Text("payload", string(a.Payload))
		},
		func(s *signalled, r store.Row) error {
			s.applied = r.Applied()
			return r.Scan(&s.status, &s.kind, &s.payload, &s.version)
		}).RecoverWith(func(_ Signal, m store.CommitProof) signalled { return signalled{applied: true, version: m.Version} }).
		Wakes(func(a Signal) []string { return []string{Topic(""), Progress(a.Run)} }).
		Emits(func(a Signal) store.Emission { return emits(a.Run, []string{"signalled"}) })
	decideVerb = store.NewVerb(store.Decl{Name: "runs.decide", Events: store.HistoryEvents},
		func(a decideArgs) []string { return []string{row(a.run)} },
		func(a decideArgs, args *store.Args) {
			args.Text("approval", a.id(approvalPrefix))
			bindVisited(a.visited, args)
			args.Text("decision", a.decision)
			args.Text("actor", a.actor)
			args.MaybeText("label", a.label)
			args.MaybeText("content", a.content)
		},
		func(d *decided, r store.Row) error {
			d.applied = r.Applied()
			return r.Scan(&d.status, &d.version)
		}).RecoverWith(func(a decideArgs, m store.CommitProof) decided { return decided{true, a.decision, m.Version} }).
		Wakes(func(a decideArgs) []string { return []string{Topic(""), Progress(a.run)} }).
		Emits(func(a decideArgs) store.Emission { return emits(a.run, []string{"approvalDecided"}) })
	approvalVerb = store.NewVerb(store.Decl{Name: "runs.approval", Lane: store.Read}, nil,
		bindVisited, scanApproval)
	approvalsVerb = newApprovalsVerb("runs.approvals")
	pendingVerb   = newApprovalsVerb("runs.pending")
	askedVerb     = newApprovalsVerb("runs.asked")
)

func newApprovalsVerb(name string) *store.Verb[approvalsArgs, []Approval] {
	return store.NewVerb(store.Decl{Name: name, Lane: store.Read}, nil,
		func(a approvalsArgs, args *store.Args) {
			bindVisited(a.visited, args)
			args.Text("status", a.status)
			args.Int("limit", int64(a.limit))
		}, scanApproval)
}

func scanApproval(all *[]Approval, r store.Row) error {
	var a Approval
	var requesters []byte
	err := r.Scan(&a.Run, &a.Step, &a.Visit, &a.Prompt, &requesters, &a.Status, &a.Actor, &a.Label, &a.Content, &a.ExpiresAt, &a.past, &a.CreatedAt, &a.DecidedAt)
	if err == nil {
		err = json.Unmarshal(requesters, &a.Requesters)
	}
	a.ID = ApprovalID(a.Run, a.Step, a.Visit)
	if a.Status == "pending" && a.past { // whoever looks next marks it so
		a.Status = "expired"
	}
	*all = append(*all, a)
	return err
}

// Send puts a signal into a run's inbox, and says whether it is new. A run that is over
// takes none: the error is [fault.InvalidTransition]. The same id with another content is
// [fault.Conflict].
func Send(ctx context.Context, d store.Doer, s Signal) (fresh bool, err error) {
	if s.ID == "" {
		s.ID = store.NewID().String()
	}
	if len(s.Payload) == 0 {
		s.Payload = []byte("null")
	}
	if err := s.check(); err != nil {
		return false, err
	}
	for range maxAttempts {
		got, err := signalVerb.Do(ctx, d, s)
		switch {
		case err != nil || got.applied:
			return got.applied, err
		case got.kind == s.Type && strictjson.Equal(got.payload, s.Payload):
			return false, nil // it was sent before
		case got.kind != "":
			return false, fault.New(fault.Conflict, "the run %q has had another signal with the id %q", s.Run, s.ID).With("pointer", "/id")
		case got.status == "":
			return false, fault.New(fault.NotFound, "there is no run %q", s.Run)
		case Over(got.status):
			return false, fault.New(fault.InvalidTransition, "the run %q is %s: it takes no signals any more", s.Run, got.status).With("status", got.status)
		}
	}
	return false, fault.New(fault.Unavailable, "the run %q moved on each time it was tried", s.Run).Repeatable()
}

func (s Signal) check() error {
	if err := CheckID(s.Run); err != nil {
		return err
	}
	for _, err := range []error{strictjson.Text("type", s.Type, events.MaxName), strictjson.Text("id", s.ID, events.MaxName)} {
		if err != nil {
			return err
		}
	}
	return strictjson.Check(s.Payload)
}

// approvalPrefix begins the id of an approval.
const approvalPrefix = "apr_"

// ApprovalID names the approval that a visit of a step asks for.
func ApprovalID(run, step string, visit int64) string {
	return visited{run, step, visit}.id(approvalPrefix)
}

func noApproval(id string) error { return fault.New(fault.NotFound, "there is no approval %q", id) }

// GetApproval returns an approval, or [fault.NotFound].
func GetApproval(ctx context.Context, d store.Doer, id string) (Approval, error) {
	v, ok := cutID(approvalPrefix, id)
	if !ok {
		return Approval{}, noApproval(id)
	}
	all, err := approvalVerb.Do(ctx, d, v)
	if err == nil && len(all) == 0 {
		err = noApproval(id)
	}
	if err != nil {
		return Approval{}, err
	}
	return all[0], nil
}

// Approvals returns approvals, of a status, of a run, behind one of them.
func Approvals(ctx context.Context, d store.Doer, status, run, behind string, limit int) ([]Approval, error) {
	all := append([]string{"", "pending", "expired"}, Decisions...)
	if !slices.Contains(all, status) {
		return nil, fault.New(fault.Validation, "an approval's status is one of %s: %q", strings.Join(all[1:], ", "), status)
	}
	a := approvalsArgs{status: status, limit: limit}
	if behind != "" {
		var ok bool
		if a.visited, ok = cutID(approvalPrefix, behind); !ok {
			return nil, fault.New(fault.Validation, "the cursor is none of this list")
		}
	}
	verb := approvalsVerb
	switch {
	case run != "":
		a.run, verb = run, askedVerb
	case status == "pending":
		verb = pendingVerb
	}
	return verb.Do(ctx, d, a)
}

// Decide decides an approval. The first decision counts: any other is [fault.Conflict], and
// so is one that comes too late.
func Decide(ctx context.Context, d store.Doer, id string, v Decision) (Approval, error) {
	if !slices.Contains(Decisions, v.Decision) {
		return Approval{}, fault.New(fault.Validation, "a decision is one of %s: %q", strings.Join(Decisions, ", "), v.Decision).With("pointer", "/decision")
	}
	if len(v.Content) > 0 {
		if err := strictjson.Check(v.Content); err != nil {
			return Approval{}, err
		}
	}
	for name, text := range map[string]string{"actor": v.Actor, "by": v.Label} {
		if text == "" && name == "by" {
			continue
		}
		if err := strictjson.Text(name, text, events.MaxName); err != nil {
			return Approval{}, err
		}
	}
	of, ok := cutID(approvalPrefix, id)
	if !ok {
		return Approval{}, noApproval(id)
	}
	a, err := GetApproval(ctx, d, id)
	if err != nil {
		return a, err
	}
	if v.May != nil {
		if err := v.May(a.Requesters); err != nil {
			return a, err
		}
	}
	got, err := decideVerb.Do(ctx, d, decideArgs{of, v.Decision, v.Actor, v.Label, string(v.Content)})
	if err != nil {
		return a, err
	}
	now, err := GetApproval(ctx, d, id)
	if err == nil && !got.applied {
		err = fault.New(fault.Conflict, "the approval %q is %s already", id, now.Status).With("status", now.Status).With("by", now.Actor)
		if now.Status == "pending" {
			err = fault.New(fault.Conflict, "the approval %q is not asked for any more", id)
		}
	}
	return now, err
}

// Inbox is a place among the signals that no step has taken; the zero value is before all.
type Inbox struct {
	nth                  int
	deaf                 bool // the step that the run stands at waits for it all the same
	workspace, run, kind string
	n                    int64
}

// inboxPage is how many signals one statement looks at.
const inboxPage = 500

var unheardVerb = store.NewVerb(store.Decl{Name: "runs.unheard", Lane: store.Read}, nil,
	func(after Inbox, args *store.Args) {
		args.Text("after_workspace", after.workspace)
		args.Text("after_run", after.run)
		args.Text("after_type", after.kind)
		args.Int("after_n", after.n)
		args.Int("limit", inboxPage)
	},
	func(all *[]Inbox, r store.Row) error {
		var x Inbox
		err := r.Scan(&x.nth, &x.deaf, &x.workspace, &x.run, &x.kind, &x.n)
		*all = append(*all, x)
		return err
	})

// Rouse looks at a page of the signals that no step has taken, of a shard, and wakes the runs
// that wait for one of them. It returns how many those were, and where to go on; the zero
// value says that this was the last page. There are none to be woken, unless a program from
// before has left them: a signal and the wake of its step are one transaction.
func (k *Executor) Rouse(ctx context.Context, d store.Doer, shard int16, after Inbox) (woken int, next Inbox, err error) {
	page, err := unheardVerb.DoAt(ctx, d, store.Partition{Shard: shard}, after)
	for _, x := range page {
		if x.nth == inboxPage {
			next = x
		}
		if !x.deaf {
			continue
		}
		yes, failed := k.rouse(ctx, d, store.Partition{Shard: shard, Workspace: x.workspace}, x.run)
		err = errors.Join(err, failed) // one that cannot be woken must not keep the others asleep
		if yes {
			woken++
		}
	}
	return woken, next, err
}

// rouse gives a run the signal that it waits for, whenever its step would be due.
func (k *Executor) rouse(ctx context.Context, d store.Doer, at store.Partition, run string) (bool, error) {
	l, err := load(ctx, d, at, visited{run: run})
	if fault.CodeOf(err) == fault.NotFound { // its time was over
		return false, nil
	}
	if err != nil || l.Step.Type != workflow.Event || l.Step.Status != Waiting || l.signal.id == "" {
		return false, err
	}
	_, woken, err := k.once(ctx, d, &l, Taker{}, func(c *planner) {
		c.due(&l)
		c.how = ""
	})
	return woken, err
}
