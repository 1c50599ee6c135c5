package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/scope"
)

// TestWhatATypeDoesNotKnowStaysWithItsItem verifies that fields which a T does not have stay
// with the items of a list that they are of, when items move, come, go and change, and are
// never given to another.
func TestWhatATypeDoesNotKnowStaysWithItsItem(t *testing.T) {
	type item struct {
		ID   int `json:"id,omitempty"`
		Note int `json:"note,omitempty"`
	}
	type holder struct {
		Items []item `json:"items"`
	}
	const three = `{"items":[{"id":1,"s":"of-1"},{"id":2,"s":"of-2"},{"id":3,"s":"of-3"}]}`
	for name, c := range map[string]struct {
		from string
		do   func([]item) []item
		want string
	}{
		"two change places": {three, func(l []item) []item { l[0], l[2] = l[2], l[0]; return l },
			`{"items":[{"id":3,"s":"of-3"},{"id":2,"s":"of-2"},{"id":1,"s":"of-1"}]}`},
		"the first goes, and one comes": {three, func(l []item) []item { return append(l[1:], item{ID: 4}) },
			`{"items":[{"id":2,"s":"of-2"},{"id":3,"s":"of-3"},{"id":4}]}`},
		"one in the middle goes, and one comes": {three, func(l []item) []item { return []item{l[0], l[2], {ID: 4}} },
			`{"items":[{"id":1,"s":"of-1"},{"id":3,"s":"of-3"},{"id":4}]}`},
		"one is replaced": {three, func(l []item) []item { l[1] = item{ID: 4}; return l },
			`{"items":[{"id":1,"s":"of-1"},{"id":4},{"id":3,"s":"of-3"}]}`},
		"all are replaced": {three, func([]item) []item { return []item{{ID: 4}, {ID: 5}, {ID: 6}} },
			`{"items":[{"id":4},{"id":5},{"id":6}]}`},
		"all change": {three, func(l []item) []item {
			for i := range l {
				l[i].Note = 7
			}
			return l
		}, `{"items":[{"id":1,"note":7,"s":"of-1"},{"id":2,"note":7,"s":"of-2"},{"id":3,"note":7,"s":"of-3"}]}`},
		"one changes and moves": {three, func(l []item) []item { l[2].Note = 7; return []item{l[2], l[0], l[1]} },
			`{"items":[{"id":3,"note":7,"s":"of-3"},{"id":1,"s":"of-1"},{"id":2,"s":"of-2"}]}`},
		"one changes, and one comes before it": {three, func(l []item) []item { l[0].Note = 7; return append([]item{{ID: 4}}, l...) },
			`{"items":[{"id":4},{"id":1,"note":7,"s":"of-1"},{"id":2,"s":"of-2"},{"id":3,"s":"of-3"}]}`},
		"an id twice tells nothing": {`{"items":[{"id":1,"s":"a"},{"id":1,"note":1,"s":"b"}]}`, func(l []item) []item { l[0].Note, l[1].Note = 5, 6; return l },
			`{"items":[{"id":1,"note":5},{"id":1,"note":6}]}`},
		"nothing tells that it is the same": {`{"items":[{"note":1,"s":"a"},{"note":2,"s":"b"}]}`, func(l []item) []item { l[1].Note = 7; return l },
			`{"items":[{"note":1,"s":"a"},{"note":7}]}`},
		"without ids, all are others": {`{"items":[{"note":1,"s":"a"},{"note":2,"s":"b"}]}`, func([]item) []item { return []item{{Note: 3}, {Note: 4}} },
			`{"items":[{"note":3},{"note":4}]}`},
		"without ids, they change places": {`{"items":[{"note":1,"s":"a"},{"note":2,"s":"b"}]}`, func(l []item) []item { return []item{l[1], l[0]} },
			`{"items":[{"note":2,"s":"b"},{"note":1,"s":"a"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := stores["memory"](t).in(t)
			e.has("u", c.from)
			change(e, "u", func(h *holder) { h.Items = c.do(h.Items) })
			e.is("u", c.want, 1)
		})
	}
}

// TestItemsAreKnownByWhatOnlyTheyHave verifies it of items that need not have an id: what tells
// them is a text or a number that no other has, and never where they stand.
func TestItemsAreKnownByWhatOnlyTheyHave(t *testing.T) {
	type item struct {
		ID   int    `json:"id"` // 0 is written, and tells nothing
		Name string `json:"name"`
		N    int    `json:"n"`
		Done bool   `json:"done"`
	}
	type holder struct {
		Items []item             `json:"items"`
		Rows  [][]map[string]int `json:"rows,omitempty"`
		Refs  []map[string]any   `json:"refs,omitempty"`
	}
	const two = `{"items":[{"name":"a","n":1,"done":false,"s":"of-a"},{"name":"b","n":5,"done":false,"s":"of-b"}]}`
	for name, c := range map[string]struct {
		from string
		do   func(*holder)
		want string
	}{
		"all change": {two, func(h *holder) { h.Items[0].N, h.Items[1].N = 7, 7 },
			`{"items":[{"name":"a","n":7,"done":false,"s":"of-a"},{"name":"b","n":7,"done":false,"s":"of-b"}]}`},
		"all change, and change places": {two, func(h *holder) { h.Items = []item{{Name: "b", N: 6}, {Name: "a", N: 2}} },
			`{"items":[{"name":"b","n":6,"done":false,"s":"of-b"},{"name":"a","n":2,"done":false,"s":"of-a"}]}`},
		"each has the number that the other had": {two, func(h *holder) { h.Items[0].N, h.Items[1].N = 5, 1 },
			`{"items":[{"name":"a","n":5,"done":false,"s":"of-a"},{"name":"b","n":1,"done":false,"s":"of-b"}]}`},
		"one goes, and one comes": {two, func(h *holder) { h.Items = []item{h.Items[1], {Name: "c"}} },
			`{"items":[{"name":"b","n":5,"done":false,"s":"of-b"},{"id":0,"name":"c","n":0,"done":false}]}`},
		"the last goes, and one comes": {two, func(h *holder) { h.Items[1] = item{Name: "c"} },
			`{"items":[{"name":"a","n":1,"done":false,"s":"of-a"},{"id":0,"name":"c","n":0,"done":false}]}`},
		"all are others": {two, func(h *holder) { h.Items = []item{{Name: "x"}, {Name: "y"}} },
			`{"items":[{"id":0,"name":"x","n":0,"done":false},{"id":0,"name":"y","n":0,"done":false}]}`},
		"all are given an id": {two, func(h *holder) { h.Items[0].ID, h.Items[1].ID = 5, 6 },
			`{"items":[{"id":5,"name":"a","n":1,"done":false,"s":"of-a"},{"id":6,"name":"b","n":5,"done":false,"s":"of-b"}]}`},
		"one changes, and one comes": {two, func(h *holder) { h.Items[0].N = 7; h.Items = append(h.Items, item{Name: "c"}) },
			`{"items":[{"name":"a","n":7,"done":false,"s":"of-a"},{"name":"b","n":5,"done":false,"s":"of-b"},{"id":0,"name":"c","n":0,"done":false}]}`},
		"lists in a list change, and change places": {`{"items":[],"rows":[[{"n":1}],[{"n":2}]]}`,
			func(h *holder) { h.Rows = [][]map[string]int{{{"n": 12}}, {{"n": 11}}} }, `{"items":[],"rows":[[{"n":12}],[{"n":11}]]}`},
		"a number that is too large": {`{"items":[],"refs":[{"ref":12345678901234567891,"n":1},{"ref":5,"n":1}]}`,
			func(h *holder) { h.Refs[0]["n"] = 7; h.Refs = append(h.Refs, map[string]any{"ref": 6}) },
			`{"items":[],"refs":[{"ref":12345678901234567891,"n":7},{"ref":5,"n":1},{"ref":6}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := stores["memory"](t).in(t)
			e.has("u", c.from)
			change(e, "u", c.do)
			e.is("u", c.want, 1)
		})
	}
}

// TestALostAnswerIsTheCallersOwn verifies that two callers who add are never told the same
// sum or version, also where the answer of one is lost and the other is there before the
// state is read.
func TestALostAnswerIsTheCallersOwn(t *testing.T) {
	intercepted(t, func(e *env, set func(intercept)) {
		e.has("u", `{"n":0,"l":[]}`)
		other := e.other()
		for name, do := range map[string]func(raw) (scope.Snapshot[json.RawMessage], error){
			"inc":  func(s raw) (scope.Snapshot[json.RawMessage], error) { return s.Inc(e.ctx, "n", 1) },
			"push": func(s raw) (scope.Snapshot[json.RawMessage], error) { return s.Push(e.ctx, "l", 1) },
		} {
			var lost, between atomic.Bool
			var theirs scope.Snapshot[json.RawMessage]
			set(func(ctx context.Context, verb string, next func(context.Context) error) (bool, error) {
				switch {
				case isEdit(verb) && lost.CompareAndSwap(false, true):
					e.ok(next(ctx))
					return true, errUntold
				case verb == "scopes.get" && between.CompareAndSwap(false, true):
					var err error
					theirs, err = do(other.raw("u"))
					e.ok(err)
				}
				return false, nil
			})
			mine, err := do(e.raw("u"))
			set(nil)
			e.ok(err)
			if mine.Version+1 != theirs.Version || !mine.Changed || !mine.Exists {
				e.Errorf("%s: %d and %d, changed %v", name, mine.Version, theirs.Version, mine.Changed)
			}
			if name == "inc" {
				e.equal("sums", sumOf(e, mine)+" "+sumOf(e, theirs), "1 2")
			}
		}
	})
}

func sumOf(e *env, s scope.Snapshot[json.RawMessage]) string {
	var is struct{ N json.RawMessage }
	e.ok(json.Unmarshal(s.State, &is))
	return string(is.N)
}

// TestBracketsAreOneByte verifies that what counts against the limit of a state is what is
// stored: an angle bracket is one byte, for every verb and on every store, and the limit is
// there.
func TestBracketsAreOneByte(t *testing.T) {
	each(t, func(e *env) {
		some := strings.Repeat("<", 300_000)
		for range 3 {
			_, err := e.raw("u").Push(e.ctx, "l", some)
			e.ok(err)
		}
		change(e, "u", func(m *map[string]any) { (*m)["more"] = "&" })
		_, err := e.raw("u").Patch(e.ctx, map[string]any{"more": "<>"})
		e.ok(err)
		for range 2 {
			_, err = e.raw("u").Push(e.ctx, "l", some)
			e.refused(err, fault.PayloadTooLarge)
		}
		s, err := e.raw("u").Get(e.ctx)
		e.ok(err)
		e.equal("version", s.Version, 4)
	}, someStores(t, everyStore)...)
}

// window has a rule over two fields.
type window struct{ From, To int }

// UnmarshalJSON refuses a window that ends before it begins.
func (w *window) UnmarshalJSON(doc []byte) error {
	type plain window
	if err := json.Unmarshal(doc, (*plain)(w)); err != nil {
		return err
	}
	if w.To < w.From {
		return errors.New("it ends before it begins")
	}
	return nil
}

// TestWhatATypeCanHoldIsTheState verifies that a change is not refused because what is added,
// alone, is nothing that a T could hold; and that one which a T cannot hold in any state is.
func TestWhatATypeCanHoldIsTheState(t *testing.T) {
	type stock struct {
		Left  uint32 `json:"left"`
		Small int8   `json:"small"`
	}
	each(t, func(e *env) {
		e.has("s", `{"left":10,"small":-100}`)
		left, err := at[stock](e, "thing", "s").Inc(e.ctx, "left", -1)
		e.ok(err)
		e.equal("left", left.State.Left, 9)
		left, err = at[stock](e, "thing", "s").Inc(e.ctx, "small", 200)
		e.ok(err)
		e.equal("small", left.State.Small, 100)
		_, err = at[stock](e, "thing", "s").Push(e.ctx, "left", 1)
		e.refused(err, fault.Validation)
		e.has("w", `{"From":1,"To":9}`)
		w, err := at[window](e, "thing", "w").Patch(e.ctx, map[string]any{"From": 5})
		e.ok(err)
		e.equal("window", w.State, window{5, 9})
	})
}

// TestAChangeToAStateThatIsNoT verifies that a change whose result a T cannot hold is committed once, and that the error says so: it is no
// VALIDATION_ERROR, after which a caller may believe that nothing was changed.
func TestAChangeToAStateThatIsNoT(t *testing.T) {
	type stock struct {
		Left uint32 `json:"left"`
	}
	each(t, func(e *env) {
		e.has("s", `{"left":10}`)
		s, err := at[stock](e, "thing", "s").Inc(e.ctx, "left", -11)
		f := e.refused(err, fault.Internal)
		e.equal("changed", []any{s.Changed, f.Fields["changed"], f.Fields["version"]}, []any{true, true, int64(1)})
		s, err = at[stock](e, "thing", "s").Get(e.ctx)
		f = e.refused(err, fault.Internal)
		e.equal("read", []any{s.Changed, f.Fields["changed"], s.Version}, []any{false, nil, int64(1)})
		e.is("s", `{"left":-1}`, 1)
	})
}

// TestTransactionsInTheLine verifies that Update stands in the scope's line: functions of
// Atomic beside it are never tried again, and its budget counts.
func TestTransactionsInTheLine(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", `{"n":0}`)
		var tries atomic.Int64
		_, lost := holdfasttest.Race(e.T, 8, func(i int) error {
			for range 10 {
				var err error
				if i%2 == 0 {
					_, err = at[number](e, "thing", "u").Atomic(e.ctx, func(_ context.Context, n number) (number, error) {
						tries.Add(1)
						return number{n.N + 1}, nil
					})
				} else {
					err = scope.Update(e.ctx, e.hf, "thing", "u", func(ctx context.Context, tx holdfast.Tx) error {
						_, err := scope.In[number](tx, "thing", "u").Inc(ctx, "n", 1)
						return err
					})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		e.equal("errors", lost, "[]")
		e.equal("tries of 40 functions", tries.Load(), 40)
		e.is("u", `{"n":80}`, 80)
		e.inTime(func(budget time.Duration) (made bool) {
			err := scope.Update(e.ctx, e.hf, "thing", "late", func(ctx context.Context, tx holdfast.Tx) error {
				_, err := scope.In[number](tx, "thing", "late").Inc(ctx, "n", 1)
				if err != nil {
					return err
				}
				made = true
				<-ctx.Done()
				return nil
			}, scope.Budget(budget))
			e.refused(err, fault.MutationTimeout)
			return made
		})
		e.isNone("late")
		_, err := e.raw("late").Inc(e.ctx, "n", 1)
		e.ok(err)
		nothing := func(context.Context, holdfast.Tx) error { return nil }
		e.refused(scope.Update(e.ctx, e.hf, "", "u", nothing), fault.Validation)
		e.refused(scope.Update(e.ctx, e.hf, "thing", "u", nil), fault.Validation)
		_, err = e.raw("late").Atomic(e.ctx, nil)
		e.refused(err, fault.Validation)
		for _, both := range [][]scope.Option{{scope.Absent(), scope.Present()}, {scope.ExpectVersion(-1), scope.Absent()}, {scope.ExpectVersion(1), scope.ExpectVersion(2)}} {
			_, err = e.raw("late", both...).Inc(e.ctx, "n", 1)
			e.refused(err, fault.Validation)
		}
		for _, o := range []scope.Option{scope.ExpectVersion(0), scope.Absent(), scope.TTL(time.Hour), scope.MaxAttempts(1), scope.By("ann")} {
			e.refused(scope.Update(e.ctx, e.hf, "thing", "u", nothing, o), fault.Validation)
		}
	}, "sqlite", "postgres")
}

// TestWatchOfAWorkspaceThatAnotherNodePlaces verifies that who watches in a workspace which
// is not there yet is told of its first scope as soon as of any other, also if the node that
// makes it spreads workspaces over more shards than this one.
func TestWatchOfAWorkspaceThatAnotherNodePlaces(t *testing.T) {
	each(t, func(e *env) {
		nodes := make([]*holdfast.Engine, 2)
		for i, shards := range []int{1, 64} {
			hf, err := holdfast.Open(e.ctx, database(e.where), holdfast.Config{Shards: shards})
			e.ok(err)
			e.Cleanup(func() { e.ok(hf.Close()) })
			nodes[i] = hf
		}
		here, there := *e, *e
		here.hf, there.hf = nodes[0], nodes[1]
		testkit.Run(e.T, here.hf)
		var all []<-chan seenChange[json.RawMessage]
		for i := range 3 { // at least one of them is not on the first shard
			here.ctx = holdfast.InWorkspace(e.ctx, fmt.Sprint("later-", i))
			news, _ := watched(&here, here.raw("u"))
			here.absent(next(&here, news).Snapshot, -1, false)
			all = append(all, news)
		}
		for i, news := range all {
			there.ctx = holdfast.InWorkspace(e.ctx, fmt.Sprint("later-", i))
			there.has("u", `{"n":1}`)
			e.like(next(e, news).Snapshot, `{"n":1}`, 0, false)
		}
	}, "sqlite", "postgres")
}

// TestWhoChangesIsAName verifies that what cannot be written to a history is refused on every
// store, also where there is none.
func TestWhoChangesIsAName(t *testing.T) {
	each(t, func(e *env) {
		for _, name := range []string{"x\x00y", "\xff"} {
			for _, v := range verbs {
				_, err := v.do(e.ctx, e.raw("u", scope.By(name)))
				e.refused(err, fault.Validation)
			}
		}
		e.isNone("u")
	})
}
