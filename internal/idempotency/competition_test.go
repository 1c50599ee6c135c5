package idempotency_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

// request appends an event to a stream, by default "done", at a version, as a route of the HTTP API does: in a
// command, and otherwise in a transaction that takes the key. The response is the version of the event.
type request struct {
	key, print, to string
	want           stream.Version
	fail           error // the handler fails with it after its write
	shared         bool  // it was done in a command
}

// oneOwner is the end of the fingerprints of one owner.
const oneOwner = "/0123456789abcdef"

func (r *request) serve(ctx context.Context, d store.Doer) (int, []byte, error) {
	last, err := stream.Append(ctx, d, cmp.Or(r.to, "done"), r.want, stream.Event{Name: r.key, Data: []byte(`"` + r.print + `"`)})
	return 200, fmt.Append(nil, last), errors.Join(err, r.fail)
}

func (r *request) on(ctx context.Context, hf *holdfast.Engine) (answer string, err error) {
	f := flightOn(hf)
	f.Key, f.Fingerprint = r.key, r.print+oneOwner
	r.shared, err = f.InCommand(ctx, func(ctx context.Context, d store.Doer) (int, []byte, error) {
		status, body, err := r.serve(ctx, d)
		answer = string(body)
		return status, body, err
	})
	if r.shared || err != nil {
		return answer, err
	}
	err = engine.Of(hf).Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		q, mine, err := f.Take(ctx, tx)
		if err == nil && !mine {
			answer, err = string(q.Answer), f.CheckReplay(q)
		}
		if err != nil || !mine {
			return err
		}
		status, body, err := r.serve(ctx, tx)
		if err != nil {
			return err
		}
		answer = string(body)
		return f.Finish(ctx, tx, status, body)
	})
	return answer, err
}

// wantStream checks the names of the events in the stream "done".
func wantStream(t *testing.T, hf *holdfast.Engine, want ...string) {
	t.Helper()
	all, err := holdfast.Collect(stream.Read(context.Background(), hf, "done", 0))
	got := make([]string, len(all))
	for i, e := range all {
		got[i] = e.Name + string(e.Data)
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the stream is %v, want %v; error %v", got, want, err)
	}
}

// cutting is a database that runs the next pair otherwise.
type cutting struct {
	store.Database
	store.Store
	next atomic.Pointer[func(store.Command) error]
}

func (c *cutting) Open(ctx context.Context, o store.Options) (_ store.Store, err error) {
	c.Store, err = c.Database.Open(ctx, o)
	return c, err
}

func (c *cutting) Base() store.Store { return c.Store }

func (c *cutting) Do(ctx context.Context, cmd store.Command) error {
	_, pair := cmd.(*store.Pair)
	if !pair {
		return c.Store.Do(ctx, cmd)
	}
	next := c.next.Swap(nil)
	if next == nil {
		return c.Store.Do(ctx, cmd)
	}
	return (*next)(cmd)
}

// TestACompetitorAfterALostResponse verifies the response of a request whose commit got no response,
// whether it was committed or not, if a competitor acts before the outcome is resolved: one that
// appends to the same stream, a repetition of the request on another node, or another request with the
// same key. A response of success means that the request's own event and response are stored.
func TestACompetitorAfterALostResponse(t *testing.T) {
	appends := request{key: "other", print: "theirs", want: stream.Any}
	repeats := request{key: "k", print: "mine", want: 0}
	uses := request{key: "k", print: "theirs", want: stream.Any}
	refused := request{key: "k", print: "theirs", want: 17}
	const zero, mine = `zero"0"`, `k"mine"`
	for name, c := range map[string]struct {
		competitor request
		committed  bool
		answer     string
		code       fault.Code
		stream     []string
	}{
		"another append, committed":        {appends, true, "1", "", []string{zero, mine, `other"theirs"`}},
		"another append, not committed":    {appends, false, "", fault.Concurrency, []string{zero, `other"theirs"`}},
		"the same request, committed":      {repeats, true, "1", "", []string{zero, mine}},
		"the same request, not committed":  {repeats, false, "1", "", []string{zero, mine}},
		"another request, committed":       {uses, true, "1", "", []string{zero, mine}},
		"another request, not committed":   {uses, false, "", fault.KeyMismatch, []string{zero, `k"theirs"`}},
		"a refused request, committed":     {refused, true, "1", "", []string{zero, mine}},
		"a refused request, not committed": {refused, false, "1", "", []string{zero, mine}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnEach(t, func(t *testing.T, url string) {
				db := &cutting{Database: store.DatabaseOf(holdfasttest.At(url))}
				hf, other := holdfasttest.OpenOn(t, store.HandleDatabase(db)), holdfasttest.OpenOn(t, holdfasttest.At(url))
				first := request{key: "zero", print: "0", want: stream.None}
				if _, err := first.on(t.Context(), hf); err != nil || !first.shared {
					t.Fatal(first.shared, err)
				}
				lose := func(cmd store.Command) error {
					if c.committed {
						wantNil(t, db.Store.Do(t.Context(), cmd))
					}
					theirs := c.competitor
					_, _ = theirs.on(context.Background(), other)
					cmd.Reset()
					return fault.New(fault.OutcomeUnknown, "the response was lost")
				}
				db.next.Store(&lose)
				r := request{key: "k", print: "mine", want: 0}
				answer, err := r.on(t.Context(), hf)
				if db.next.Load() != nil {
					t.Fatal("no response was lost")
				}
				testkit.WantCode(t, err, c.code)
				wantStream(t, other, c.stream...)
				if err != nil {
					return
				}
				q, err := idempotency.Get(t.Context(), engine.Of(other), "k")
				if err != nil || answer != c.answer || q.State != idempotency.Done || q.Fingerprint != "mine"+oneOwner || string(q.Answer) != answer {
					t.Errorf("got response %s, want %s; the request is %+v, error %v", answer, c.answer, q, err)
				}
			})
		})
	}
}

// TestACommandRunsOnce verifies that a request whose transaction is rolled back after its handler has
// returned, and repeated when another process has changed the stream, is not done with the old
// response. On PostgreSQL, TestACommandWhoseCommitIsLost verifies the same.
func TestACommandRunsOnce(t *testing.T) {
	path := holdfasttest.SQLite(t)
	db := &cutting{Database: store.DatabaseOf(holdfasttest.At(path))}
	hf, other := holdfasttest.OpenOn(t, store.HandleDatabase(db)), holdfasttest.OpenOn(t, holdfasttest.At(path))
	rolledBack := errors.New("rolled back")
	again := func(cmd store.Command) error {
		err := db.Store.Update(t.Context(), func(ctx context.Context, c store.Conn) error { return errors.Join(c.Run(ctx, cmd), rolledBack) })
		if !errors.Is(err, rolledBack) || !cmd.Applied() {
			t.Errorf("applied %t, error %v", cmd.Applied(), err)
		}
		theirs := request{key: "other", print: "theirs", want: stream.Any}
		_, err = theirs.on(t.Context(), other)
		wantNil(t, err)
		return db.Store.Do(t.Context(), cmd)
	}
	db.next.Store(&again)
	r := request{key: "k", print: "mine", want: stream.Any}
	if answer, err := r.on(t.Context(), hf); err != nil || answer != "1" || r.shared {
		t.Errorf("got response %s, in a command %t, error %v", answer, r.shared, err)
	}
	wantStream(t, other, `other"theirs"`, `k"mine"`)
}

// TestAFailedCommandAffectsNoOther verifies that requests that share a transaction, or a stream, with
// others whose handlers fail after their write are done once each, with the version of their event as
// the response, and that nothing is stored of those that fail.
func TestAFailedCommandAffectsNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		const callers, rounds = 16, 8
		failed := errors.New("failed")
		name := func(i, n int) (key, to string) { return fmt.Sprint("k", i, "-", n), fmt.Sprint("s", i%4) }
		var shared atomic.Int64
		_, lost := holdfasttest.Race(t, callers, func(i int) error {
			for n := range rounds {
				r := request{print: "p", want: stream.Any}
				r.key, r.to = name(i, n)
				if i%8 == 0 {
					r.fail = failed
				}
				if _, err := r.on(t.Context(), hf); !errors.Is(err, r.fail) {
					return fmt.Errorf("%s: %w", r.key, err)
				}
				if r.shared {
					shared.Add(1)
				}
			}
			return nil
		})
		if len(lost) > 0 || shared.Load() == 0 {
			t.Errorf("%d requests were done in a command; %v", shared.Load(), errors.Join(lost...))
		}
		versions := make(map[string]string)
		for i := range 4 {
			_, to := name(i, 0)
			for e, err := range stream.Read(t.Context(), hf, to, 0) {
				wantNil(t, err)
				if versions[e.Name] != "" {
					t.Errorf("%s was done twice", e.Name)
				}
				versions[e.Name] = fmt.Sprint(e.Version)
			}
		}
		for i := range callers {
			for n := range rounds {
				key, _ := name(i, n)
				q, err := idempotency.Get(t.Context(), engine.Of(hf), key)
				if err != nil || string(q.Answer) != versions[key] || (versions[key] != "") != (i%8 > 0) {
					t.Errorf("the event of %s has version %q; the request is %+v, error %v", key, versions[key], q, err)
				}
			}
		}
	})
}

// TestARefusedRequestIsRecordedOnce verifies that the refusal of a request is recorded once, although
// the request is served in a command and then in a transaction, and that its key stays free.
func TestARefusedRequestIsRecordedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		r := request{key: "k", print: "p", want: 7}
		_, err := r.on(t.Context(), hf)
		testkit.WantCode(t, err, fault.Concurrency)
		if n := engine.Of(hf).Refusals().Counts()[refusals.Counted{Kind: "stream", Code: fault.Concurrency}]; n != 1 {
			t.Errorf("%d refusals were recorded, want 1", n)
		}
		r.want = stream.Any
		if answer, err := r.on(t.Context(), hf); err != nil || answer != "0" || !r.shared {
			t.Errorf("got response %s, in a command %t, error %v", answer, r.shared, err)
		}
	})
}

// TestRequestsOnTwoNodes verifies that of concurrent requests with one key on two nodes, of which some
// are a different request, one is done: its repetitions get its response, and the others are refused.
func TestRequestsOnTwoNodes(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, url string) {
		nodes := []*holdfast.Engine{holdfasttest.OpenOn(t, holdfasttest.At(url)), holdfasttest.OpenOn(t, holdfasttest.At(url))}
		for round := range 6 {
			key := fmt.Sprint("k", round)
			var answers [2]atomic.Int64
			_, lost := holdfasttest.Race(t, 16, func(i int) error {
				r := request{key: key, print: fmt.Sprint(i / 2 % 2), want: stream.Any}
				answer, err := r.on(t.Context(), nodes[i%2])
				switch {
				case err == nil && answer == fmt.Sprint(round):
					answers[i/2%2].Add(1)
				case fault.CodeOf(err) != fault.KeyMismatch:
					return fmt.Errorf("got response %s: %w", answer, err)
				}
				return nil
			})
			if len(lost) > 0 || answers[0].Load()+answers[1].Load() != 8 || answers[0].Load()*answers[1].Load() != 0 {
				t.Errorf("%d and %d requests succeeded, want 8 of the same; %v", answers[0].Load(), answers[1].Load(), errors.Join(lost...))
			}
			wantLength(t, nodes[0], "done", round+1)
		}
	})
}
