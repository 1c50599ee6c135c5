package runengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// Signal is a message to a run. The sender chooses its id: the same id again is the same
// signal.
type Signal struct {
	Run, ID, Type string
	Payload       []byte
	Actor         string // recorded in the history; "" is unknown
}

type signalled struct {
	applied bool
	status  string // of the run
	kind    string // the type of the signal that the run already has under this id, or ""
	payload []byte // of that signal
	version int64
}

// Approval is a request for a decision, or the decision.
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
	past                 bool // ExpiresAt has passed, by the database's clock
}

// Decision decides an approval. Actor is the authenticated actor; Label is a display name of the actor's choice.
type Decision struct {
	Decision, Actor, Label string
	Content                []byte
	// May returns an error if the actor may not decide for any of the requesters; a nil May allows all.
	May func(requesters []string) error
}

// Decisions are the valid decisions.
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
	visited // the cursor
	status  string
	scan    int // of list_approvals
	limit   int
}

var (
	signalVerb = store.NewVerb(store.Decl{Name: "runs.add_signal", Events: store.HistoryEvents},
		func(a Signal) []string { return []string{row(a.Run)} },
		func(a Signal, args *store.Args) {
			args.Text("run", a.Run)
			args.Text("id", a.ID)
			args.Text("type", a.Type)
			args.Text("payload", string(a.Payload))
			args.MaybeText("actor", a.Actor)
		},
		func(s *signalled, r store.Row) error {
			s.applied = r.Applied()
			return r.Scan(&s.status, &s.kind, &s.payload, &s.version)
		}).RecoverWith(func(_ Signal, m store.CommitProof) signalled { return signalled{applied: true, version: m.Version} }).
		Wakes(func(a Signal) []string { return []string{Topic(""), ProgressTopic(a.Run)} }).
		Emits(func(a Signal) store.Emission { return emits(a.Run, []string{"signalled"}) })
	decideVerb = store.NewVerb(store.Decl{Name: "runs.decide_approval", Events: store.HistoryEvents},
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
		Wakes(func(a decideArgs) []string { return []string{Topic(""), ProgressTopic(a.run)} }).
		Emits(func(a decideArgs) store.Emission { return emits(a.run, []string{"approvalDecided"}) })
	approvalVerb = store.NewVerb(store.Decl{Name: "runs.get_approval", Lane: store.Read}, nil,
		bindVisited, scanApproval)
	listApprovalsVerb = store.NewVerb(store.Decl{Name: "runs.list_approvals", Lane: store.Read}, nil,
		func(a approvalsArgs, args *store.Args) {
			bindVisited(a.visited, args)
			args.Text("last", store.Last)
			args.Text("status", a.status)
			args.Int("scan", int64(a.scan))
			args.Int("limit", int64(a.limit))
		},
		func(all *[]store.Found[Approval], r store.Row) (err error) {
			var f store.Found[Approval]
			f.Row, err = readApproval(r, &f.Wanted, &f.Edge)
			*all = append(*all, f)
			return err
		})
	listPendingApprovalsVerb = newApprovalsVerb("runs.list_pending_approvals")
	listRunApprovalsVerb     = newApprovalsVerb("runs.list_run_approvals")
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
	a, err := readApproval(r)
	*all = append(*all, a)
	return err
}

// readApproval reads a row with an approval, after other columns.
func readApproval(r store.Row, before ...any) (a Approval, err error) {
	var requesters []byte
	err = r.Scan(append(before, &a.Run, &a.Step, &a.Visit, &a.Prompt, &requesters, &a.Status, &a.Actor, &a.Label, &a.Content, &a.ExpiresAt, &a.past, &a.CreatedAt, &a.DecidedAt)...)
	if err == nil {
		err = json.Unmarshal(requesters, &a.Requesters)
	}
	a.ID = ApprovalID(a.Run, a.Step, a.Visit)
	a.DecidedAt = store.OrZero(a.DecidedAt)
	if a.Status == "pending" && a.past { // the next poll stores this
		a.Status = "expired"
	}
	return a, err
}

// Send stores a signal for a run and reports whether it is new. A finished run accepts no
// signals: the error is [fault.InvalidTransition]. The same id with different content returns
// [fault.Conflict].
func Send(ctx context.Context, d store.Doer, s Signal) (fresh bool, err error) {
	fresh, err = send(ctx, d, s)
	return fresh, note(ctx, d, s.Run, "signal", s.Actor, err)
}

func send(ctx context.Context, d store.Doer, s Signal) (fresh bool, err error) {
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
			return false, fault.New(fault.Conflict, "run %q already has a different signal with id %q: use a new id", s.Run, s.ID).With("pointer", "/id")
		case got.status == "":
			return false, fault.New(fault.NotFound, "run %q does not exist", s.Run)
		case Over(got.status):
			return false, fault.New(fault.InvalidTransition, "run %q is %s and no longer accepts signals", s.Run, got.status).With("status", got.status)
		}
	}
	return false, fault.New(fault.Unavailable, "run %q changed concurrently during every attempt: try again", s.Run).AsRetryable()
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
	return cmp.Or(events.CheckMeta(events.Meta{Actor: s.Actor}), strictjson.Check(s.Payload))
}

// approvalPrefix is the prefix of approval ids.
const approvalPrefix = "apr_"

// ApprovalID returns the id of the approval that a visit of a step requests.
func ApprovalID(run, step string, visit int64) string {
	return visited{run, step, visit}.id(approvalPrefix)
}

func noApproval(id string) error { return fault.New(fault.NotFound, "approval %q does not exist", id) }

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

// Approvals returns the approvals after a cursor, filtered by status and run; "" matches all. Pending ones are found by an index,
// and those of a run by its key; of all others it searches (store.Found).
func Approvals(ctx context.Context, d store.Doer, status, run, after string, limit int) ([]store.Found[Approval], error) {
	all := append([]string{"", "pending", "expired"}, Decisions...)
	if !slices.Contains(all, status) {
		return nil, fault.New(fault.Validation, "status must be one of %s, got %q", strings.Join(all[1:], ", "), status)
	}
	a := approvalsArgs{status: status, scan: store.SearchScan, limit: limit}
	if status == "" {
		a.scan = limit
	}
	if after != "" {
		var ok bool
		if a.visited, ok = cutID(approvalPrefix, after); !ok {
			return nil, fault.New(fault.Validation, "the cursor %q does not belong to this list: use the cursor of the previous page", after)
		}
	}
	var found []Approval
	var err error
	switch {
	case run != "":
		a.run = run
		found, err = listRunApprovalsVerb.Do(ctx, d, a)
	case status == "pending":
		found, err = listPendingApprovalsVerb.Do(ctx, d, a)
	default:
		return listApprovalsVerb.Do(ctx, d, a)
	}
	wanted := make([]store.Found[Approval], len(found))
	for i, x := range found {
		wanted[i] = store.Found[Approval]{Row: x, Wanted: true}
	}
	return wanted, err
}

// Decide decides an approval. The first decision counts: any other, or one that comes too late,
// returns [fault.Conflict].
func Decide(ctx context.Context, d store.Doer, id string, v Decision) (Approval, error) {
	a, err := decide(ctx, d, id, v)
	return a, refusals.Note(ctx, d, refusals.Try{Stream: Stream(a.Run), Action: "decide", Actor: v.Actor}, err)
}

func decide(ctx context.Context, d store.Doer, id string, v Decision) (Approval, error) {
	if !slices.Contains(Decisions, v.Decision) {
		return Approval{}, fault.New(fault.Validation, "decision must be one of %s, got %q", strings.Join(Decisions, ", "), v.Decision).With("pointer", "/decision")
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
		err = fault.New(fault.Conflict, "approval %q is already %s", id, now.Status).With("status", now.Status).With("by", now.Actor)
		if now.Status == "pending" {
			err = fault.New(fault.Conflict, "approval %q is no longer needed: its run has moved on", id)
		}
	}
	return now, err
}

// Inbox is a position among the signals that no step has taken; the zero value is the start. It has nothing to do with
// package inbox.
type Inbox struct {
	nth                  int  // the signal's number on its page, from 1
	unwoken              bool // the current step of the run waits for this signal, but was not woken
	workspace, run, kind string
	n                    int64 // orders the signals of a run
}

// inboxPage is how many signals one statement reads.
const inboxPage = 500

var listUntakenSignalsVerb = store.NewVerb(store.Decl{Name: "runs.list_untaken_signals", Lane: store.Read}, nil,
	func(after Inbox, args *store.Args) {
		args.Text("after_workspace", after.workspace)
		args.Text("after_run", after.run)
		args.Text("after_type", after.kind)
		args.Int("after_n", after.n)
		args.Int("limit", inboxPage)
	},
	func(all *[]Inbox, r store.Row) error {
		var x Inbox
		err := r.Scan(&x.nth, &x.unwoken, &x.workspace, &x.run, &x.kind, &x.n)
		*all = append(*all, x)
		return err
	})

// Rouse reads a page of a shard's signals that no step has taken, and wakes the runs that wait for
// one of them. It returns the number of woken runs and the next position, which is the zero value
// after the last page. A signal and the wake-up of its step are one transaction, so only older
// versions of Holdfast can have left such runs.
func (k *Executor) Rouse(ctx context.Context, d store.Doer, shard int16, after Inbox) (woken int, next Inbox, err error) {
	page, err := listUntakenSignalsVerb.DoAt(ctx, d, store.Partition{Shard: shard}, after)
	for _, x := range page {
		if x.nth == inboxPage {
			next = x
		}
		if !x.unwoken {
			continue
		}
		yes, failed := k.rouse(ctx, d, store.Partition{Shard: shard, Workspace: x.workspace}, x.run)
		err = errors.Join(err, failed) // a run that cannot be woken must not block the others
		if yes {
			woken++
		}
	}
	return woken, next, err
}

// rouse passes a run the signal that it waits for, regardless of when its step is due.
func (k *Executor) rouse(ctx context.Context, d store.Doer, at store.Partition, run string) (bool, error) {
	l, err := load(ctx, d, at, visited{run: run})
	if fault.CodeOf(err) == fault.NotFound { // deleted by retention
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
