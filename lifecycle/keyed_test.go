package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

// goods have a second step behind the first, and one that may be done again and again.
var goods = strings.Replace(invoices, "noted]", "noted, shipping, shipped]", 1) + `
- {step_id: 80, step_key: ship, status: closed, successful_claim_state: [shipping, closed], successful_state: shipped, action: Act}
- {step_id: 90, step_key: count, status: noted, successful_state: noted, action: Act}
`

// shop is a user's handler behind idem.Middleware, which fires steps.
type shop struct {
	*world
	on    *world   // whose entities it fires; nil is the shop's own
	steps []string // "id step", one after the other
	o     []lifecycle.FireOption
	// What a test has happen: when a run begins, which may refuse the request; and
	// behind each of its steps.
	begins func(run int, r *http.Request) (refused int)
	behind func(run, step int)
	runs   int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.runs++
	run := s.runs
	if s.begins != nil {
		if status := s.begins(run, r); status != 0 {
			http.Error(w, "refused", status)
			return
		}
	}
	on, told := s.world, ""
	if s.on != nil {
		on = s.on
	}
	for i, x := range s.steps {
		id, step, _ := strings.Cut(x, " ")
		e, err := on.l.Fire(r.Context(), on.e, id, step, "admin", s.o...)
		if err != nil {
			s.fails(w, err)
			return
		}
		told += fmt.Sprintf("%s %d;", e.Status, e.Version)
		if s.behind != nil {
			s.behind(run, i)
		}
	}
	fmt.Fprint(w, told)
}

func (s *shop) fails(w http.ResponseWriter, err error) {
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil {
		s.t.Error(err)
		return
	}
	told := string(f.Code)
	if o, ok := f.Fields["outcome"].(string); ok {
		told += " " + o
	}
	http.Error(w, told, f.Code.Status())
}

// keyLease is shorter than the lease of a step: a key can be lost while its step is held.
const keyLease = 10 * time.Second

var errDied = errors.New("the process dies")

// die is the death of a process: its key is held, until the lease expires.
func (s *shop) die() {
	s.advance(keyLease + time.Second)
	panic(errDied)
}

// dies is a shop whose first run dies behind a step.
func (s *shop) dies(behind int) {
	s.behind = func(run, step int) {
		if run == 1 && step == behind {
			s.die()
		}
	}
}

// send sends a request, always under the same key. A process that dies does not answer.
func (s *shop) send(h http.Handler, body string) (status int, answer string) {
	defer func() {
		if p := recover(); p == errDied {
			status, answer = 0, "died"
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", "k")
	idem.Middleware(s.e, idem.Options{SharedKeys: true, Lease: keyLease})(h).ServeHTTP(w, r)
	answer = strings.TrimSpace(w.Body.String())
	if w.Header().Get("Content-Type") == "application/problem+json" {
		_, answer, _ = strings.Cut(answer, `"code":"`)
		answer, _, _ = strings.Cut(answer, `"`)
		answer = "idem: " + answer
	}
	return w.Code, answer
}

func (s *shop) want(body string, status int, answer string) {
	s.t.Helper()
	if got, told := s.send(s, body); got != status || told != answer {
		s.t.Errorf("got response %d %s, want %d %s", got, told, status, answer)
	}
}

// ran fails unless the handler and the actions of an entity ran so often.
func (s *shop) ran(handler int, id string, action int) {
	s.t.Helper()
	if s.runs != handler || s.called(id) != action {
		s.t.Errorf("the handler ran %d times and the action of %s %d times, want %d and %d", s.runs, id, s.called(id), handler, action)
	}
}

// TestARetryFindsItsOwnStep verifies that a request whose process crashed after its step, before its response
// was stored, gets the same response when it is sent again. The step neither runs again nor is refused, and
// the caller's writes in the transaction that begins it are applied once.
func TestARetryFindsItsOwnStep(t *testing.T) {
	for step, acts := range map[string]int{"close": 1, "note": 1, "skip": 0} { // claimed; with code and no claim; with neither
		t.Run(step, func(t *testing.T) {
			everywhere(t, invoices, func(t *testing.T, w *world) {
				w.create("i")
				w.act("i", func(ctx context.Context, _ *lifecycle.Act[bill]) error {
					if idempotency.FlightOf(ctx) != nil {
						t.Error("the action's context belongs to the request's key, want the operation's")
					}
					return nil
				})
				s := &shop{world: w, steps: []string{"i " + step}}
				s.o = []lifecycle.FireOption{lifecycle.Beginning(func(ctx context.Context, tx *store.Tx, _ string) error {
					_, err := stream.Append(ctx, tx, "begun", stream.Any, stream.Event{Name: "begun"})
					return err
				})}
				s.dies(0)
				s.want("", 0, "died")
				done := w.get("i")
				told := fmt.Sprintf("%s %d;", done.Status, done.Version)
				s.want("", 200, told)
				s.want("", 200, told)
				s.want("other", 422, "idem: KEY_MISMATCH")
				s.ran(2, "i", acts)
				if all, err := holdfast.Collect(stream.Read(context.Background(), w.e, "begun", 0)); err != nil || len(all) != 1 {
					t.Errorf("the handler began %d times, want 1; %v", len(all), err)
				}
			})
		})
	}
}

// TestSeveralStepsUnderOneKey verifies that the steps of a handler are distinguished, for one entity, for
// two, and for the same step fired several times; and that the handler continues where it was after a crash
// behind each of them.
func TestSeveralStepsUnderOneKey(t *testing.T) {
	steps := []string{"i close", "j skip", "j count", "i ship", "j count", "j count"}
	for dies := range steps {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			each(t, goods, func(t *testing.T, w *world) {
				w.create("i", "j")
				s := &shop{world: w, steps: steps}
				s.dies(dies)
				s.want("", 0, "died")
				if status, told := s.send(s, ""); status != 200 || strings.Count(told, ";") != len(steps) {
					t.Errorf("got response %d %s", status, told)
				}
				w.happened("i", "shipped", "created", "claimed", "settled/close", "claimed", "settled/ship")
				w.happened("j", "noted", "created", "settled/skip", "settled/count", "settled/count", "settled/count")
				s.ran(2, "i", 2)
				s.ran(2, "j", 3)
			})
		})
	}
}

// TestAReleasedStepFreesItsKey verifies that a step that was refused, or failed and went
// back, leaves the key to another request, and to the same, which then does it.
func TestAReleasedStepFreesItsKey(t *testing.T) {
	for _, step := range []string{"close", "note"} {
		t.Run(step, func(t *testing.T) {
			each(t, invoices, func(t *testing.T, w *world) {
				for i, body := range []string{"", "other"} {
					id := fmt.Sprint("i", i)
					w.create(id)
					s := &shop{world: w, steps: []string{id + " " + step}}
					w.may(id, func(context.Context, *lifecycle.Act[bill]) error { return holdfast.Invalid("too much") })
					told := "ACTION_INVALID released"
					if step == "note" {
						told = "ACTION_INVALID" // without a claim there is nothing to release
					}
					s.want("first", 422, told)
					w.may(id, nil)
					w.act(id, func(context.Context, *lifecycle.Act[bill]) error { return errOwn })
					s.want("first", 422, "ACTION_FAILED released")
					w.act(id, nil)
					done := map[string]string{"close": "closed 6;", "note": "noted 1;"}[step]
					s.want(body+"first", 200, done)
					s.want(body+"first", 200, done)
					s.ran(3, id, 2)
					w.advance(25 * time.Hour) // the key is for the next
				}
			})
		})
	}
}

// TestAFailedStepStaysFailed verifies that a step which failed, and moved the entity to
// where failures go, is answered so again under its key, and keeps it.
func TestAFailedStepStaysFailed(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		w.act("i", func(context.Context, *lifecycle.Act[bill]) error { return errOwn })
		s := &shop{world: w, steps: []string{"i try"}}
		s.want("", 422, "ACTION_FAILED released")
		w.free("i", "failed")
		w.advance(time.Second)
		s.want("", 422, "ACTION_FAILED failed")
		s.want("other", 422, "idem: KEY_MISMATCH")
		s.ran(2, "i", 1)
	})
}

// TestTheKeyStaysWithAStepThatIsDone verifies that a handler that refuses behind a step
// which is done, or panics, has not freed its key: the request may be sent again at
// once, and another one is refused.
func TestTheKeyStaysWithAStepThatIsDone(t *testing.T) {
	each(t, goods, func(t *testing.T, w *world) {
		w.create("i", "j")
		w.act("i", func(_ context.Context, a *lifecycle.Act[bill]) error {
			if a.Step == "ship" && w.called("i") == 2 {
				return errOwn
			}
			return nil
		})
		s := &shop{world: w, steps: []string{"i close", "i ship", "j skip"}}
		s.want("", 422, "ACTION_FAILED released")
		w.advance(time.Second)
		s.want("other", 422, "idem: KEY_MISMATCH")
		s.behind = func(run, step int) {
			if run == 2 && step == 1 {
				panic(errDied)
			}
		}
		s.want("", 0, "died")
		w.advance(time.Second)
		s.want("other", 422, "idem: KEY_MISMATCH")
		s.want("", 200, "shipped 6;shipped 6;noted 1;")
		s.ran(3, "i", 3)
	})
}

// TestTheKeyIsLostWhileItsStepIsHeld verifies the errors of other requests while a step is in progress: first
// because of the key, while its lease lasts, and then because of the step. No other request runs the step,
// and all get its outcome in the end.
func TestTheKeyIsLostWhileItsStepIsHeld(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		s := &shop{world: w, steps: []string{"i close"}}
		w.act("i", func(context.Context, *lifecycle.Act[bill]) error {
			s.want("", 409, "idem: KEY_IN_FLIGHT")
			w.advance(keyLease + time.Second)
			s.want("", 409, "KEY_IN_FLIGHT")
			w.advance(time.Second)
			s.want("", 409, "KEY_IN_FLIGHT")
			s.want("other", 422, "idem: KEY_MISMATCH")
			return nil
		})
		s.want("", 200, "closed 2;") // it is done, and its answer was not recorded
		w.advance(time.Second)
		s.want("", 200, "closed 2;")
		s.want("", 200, "closed 2;")
		s.ran(4, "i", 1)
	})
}

// TestALateHolderBeginsNothing verifies that a handler whose key was lost before it fires
// begins nothing once another has refused the request; and, where another has done the
// step, finds it done.
func TestALateHolderBeginsNothing(t *testing.T) {
	for _, step := range []string{"close", "note", "skip"} {
		t.Run(step, func(t *testing.T) {
			everywhere(t, invoices, func(t *testing.T, w *world) {
				w.create("i")
				s := &shop{world: w, steps: []string{"i " + step}}
				late := 1
				s.begins = func(run int, _ *http.Request) int {
					switch run {
					case late:
						w.advance(keyLease + time.Second)
						if late == 1 {
							s.want("", 400, "refused")
						} else {
							s.want("", 200, w.done(step))
						}
					case 2:
						return 400
					}
					return 0
				}
				s.want("", 409, "LEASE_LOST")
				w.free("i", "open")
				acted := w.called("i") // without a claim, a body has run in vain
				late = 3
				s.want("", 200, w.done(step))
				s.want("", 200, w.done(step))
				if s.runs != 4 || w.called("i") > acted+1 {
					t.Errorf("the handler ran %d times, the action %d times, want 4 and at most 1", s.runs, w.called("i")-acted)
				}
			})
		})
	}
}

// TestAnotherRunWasFaster verifies that a run that has lost its key, and whose step another run of the
// request has already executed, gets the outcome of that step and no refusal.
func TestAnotherRunWasFaster(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		s := &shop{world: w, steps: []string{"i note"}}
		w.act("i", func(context.Context, *lifecycle.Act[bill]) error {
			if w.called("i") == 1 {
				w.advance(keyLease + time.Second)
				s.want("", 200, "noted 1;")
			}
			return nil
		})
		s.want("", 200, "noted 1;")
		s.ran(2, "i", 2) // without a claim, both bodies have run
	})
}

// done returns the response of a shop after the first fire of a step.
func (w *world) done(step string) string {
	return map[string]string{"close": "closed 2;", "note": "noted 1;", "skip": "noted 1;"}[step]
}

// TestAStepElsewhere verifies that a step in another database than the key's, and in
// another workspace, is found again too; and that one is refused which is fired behind a Commit: no retry would do it.
func TestAStepElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w, other := newWorld(t, db, invoices), newWorld(t, "sqlite:"+t.TempDir()+"/other.db", invoices)
		other.create("i")
		s := &shop{world: w, on: other, steps: []string{"i close"}}
		s.dies(0)
		s.want("", 0, "died")
		s.want("", 200, "closed 2;")
		other.happened("i", "closed", "created", "claimed", "settled/close")
	})
	each(t, invoices, func(t *testing.T, w *world) {
		elsewhere := func(ctx context.Context) context.Context { return holdfast.InWorkspace(ctx, "elsewhere") }
		if _, err := w.l.Create(elsewhere(context.Background()), w.e, "i", bill{}); err != nil {
			t.Fatal(err)
		}
		s := &shop{world: w}
		runs := 0
		h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			runs++
			if _, err := w.l.Fire(elsewhere(r.Context()), w.e, "i", "close", "admin"); err != nil {
				t.Error(err)
			}
			if runs == 1 {
				s.die()
			}
		})
		s.send(h, "")
		if status, _ := s.send(h, ""); status != 200 || runs != 2 {
			t.Errorf("got status %d after %d runs, want 200 after 2", status, runs)
		}
	})
	each(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		s := &shop{world: w}
		h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if err := idem.Commit(r.Context(), func(context.Context, holdfast.Tx) error { return nil }); err != nil {
				t.Error(err)
			}
			if _, err := w.l.Fire(r.Context(), w.e, "i", "close", "admin"); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("fire after idem.Commit: got %v, want ErrConflict", err)
			}
		})
		s.send(h, "")
		w.happened("i", "open", "created")
	})
}

// TestARetriedKeyKeepsItsSteps verifies that the step of a key which is retried again and again is done once, also
// when the first request is longer ago than a key is kept.
func TestARetriedKeyKeepsItsSteps(t *testing.T) {
	everywhere(t, goods, func(t *testing.T, w *world) {
		w.create("i")
		if _, err := w.l.Fire(t.Context(), w.e, "i", "note", "admin"); err != nil {
			t.Fatal(err)
		}
		before := w.called("i")
		s := &shop{world: w}
		h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			s.runs++
			if _, err := w.l.Fire(r.Context(), w.e, "i", "count", "admin"); err != nil {
				t.Error(err)
			}
			http.Error(rw, "down", http.StatusServiceUnavailable)
		})
		for _, d := range []time.Duration{0, 23 * time.Hour, 2 * time.Hour} {
			w.advance(d + time.Second)
			s.send(h, "{}")
		}
		if n := w.called("i") - before; n != 1 || s.runs != 3 {
			t.Errorf("the step ran %d times in %d runs of the handler, want 1 in 3", n, s.runs)
		}
	})
}

// TestAClaimUnderAKey verifies that a manual claim belongs to the key too: a retry finds it leased by the
// earlier run, then released, and takes it again; after it has ended, a retry gets its outcome.
func TestAClaimUnderAKey(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		s := &shop{world: w}
		dies := "held"
		h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			c, err := w.l.Claim(r.Context(), w.e, "i", "close", "admin")
			if err != nil {
				s.fails(rw, err)
				return
			}
			if dies == "held" {
				s.die()
			}
			if _, err := c.Settle(r.Context(), nil, nil); err != nil {
				t.Error(err)
			}
			if dies == "settled" {
				s.die()
			}
		})
		want := func(status int, answer string) {
			t.Helper()
			if got, told := s.send(h, ""); got != status || told != answer {
				t.Errorf("got response %d %s, want %d %s", got, told, status, answer)
			}
		}
		want(0, "died")
		want(409, "KEY_IN_FLIGHT")
		w.advance(time.Hour)
		w.round()
		dies = "settled"
		want(0, "died")
		want(409, "CONFLICT success")
		w.happened("i", "closed", "created", "claimed", "recovered", "claimed", "settled/close")
	})
}

// Verifies that a step which a handler fires when it has returned is refused: no retry would run the handler, and the step would be
// lost with the process.
func TestAStepBehindTheAnswerIsRefused(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		var late context.Context
		status, _ := (&shop{world: w}).send(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { late = context.WithoutCancel(r.Context()) }), "")
		_, err := w.l.Fire(late, w.e, "i", "close", "admin")
		testkit.WantCode(t, err, fault.LeaseLost)
		if status != http.StatusOK || w.called("i") != 0 {
			t.Errorf("got status %d, and the action ran %d times, want 200 and 0", status, w.called("i"))
		}
	})
}
