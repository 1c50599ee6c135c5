package streamclose_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

var modes = []streamclose.Mode{streamclose.Archive, streamclose.Tombstone, streamclose.Restart}

// TestCloseRacesAppends verifies in many rounds that every acknowledged append lies
// before the close, where the export sees it, or after a restart, where the stream has
// it; that every other append was refused because the stream is closed; and that
// versions have no gap.
func TestCloseRacesAppends(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		rounds := testlevel.Pick(20, 500, 5000)
		var before, after, refusals int
		for i := range rounds {
			r := &round{hf: hf, stream: fmt.Sprint("s", i), mode: modes[i%3], exports: i%2 == 0, after: i % 7, closing: make(chan struct{})}
			r.run(t)
			before, after, refusals = before+int(r.closed.Last), after+len(r.acked), refusals+r.refused
			if t.Failed() {
				t.Fatalf("round %d: close returned %+v", i, r.closed)
			}
		}
		t.Logf("%d events before the closes, %d appends acknowledged in total, %d refused", before, after, refusals)
		if refusals == 0 || before == 0 {
			t.Error("no append ran at the same time as a close")
		}
	})
}

type round struct {
	hf      *holdfast.Engine
	stream  string
	mode    streamclose.Mode
	exports bool
	after   int           // the close begins after so many acknowledged appends
	closing chan struct{} // closed when it may begin

	closed streamclose.Closed
	seen   []int64 // by the export

	mu      sync.Mutex
	acked   []int64
	refused int
	begin   sync.Once
}

func (r *round) run(t *testing.T) {
	add(t, r.hf, r.stream, 1)
	r.acked = []int64{0}
	_, lost := holdfasttest.Race(t, 4, func(i int) (err error) {
		if i == 0 {
			if r.after > 0 {
				<-r.closing
			}
			for r.closed, err = closeAt(r.hf, r.stream, r.mode, r.export()); r.mode == streamclose.Restart && fault.CodeOf(err) == fault.Concurrency; {
				r.closed, err = closeAt(r.hf, r.stream, r.mode, r.export()) // another append came after the read
			}
			return err
		}
		return r.append()
	})
	for _, err := range lost {
		t.Error(err)
	}
	r.judge(t)
}

func (r *round) export() func(context.Context, int64, int64) error {
	if !r.exports {
		return nil
	}
	return func(ctx context.Context, first, last int64) error {
		all, err := holdfast.Collect(stream.Read(ctx, r.hf, r.stream, stream.Version(first)))
		for _, e := range all {
			r.seen = append(r.seen, int64(e.Version))
		}
		if err == nil && int64(len(all)) != last-first+1 {
			err = fmt.Errorf("got %d events for versions %d to %d", len(all), first, last)
		}
		return err
	}
}

func (r *round) append() error {
	for range 4 {
		v, err := stream.Append(ctx, r.hf, r.stream, stream.Any, stream.Event{Name: "a"})
		r.mu.Lock()
		if err == nil {
			r.acked = append(r.acked, int64(v))
		} else {
			r.refused++
		}
		enough := len(r.acked) > r.after
		r.mu.Unlock()
		if failed := err != nil && fault.CodeOf(err) != fault.StreamClosed; failed || enough {
			r.begin.Do(func() { close(r.closing) })
			if failed {
				return err
			}
		}
	}
	return nil
}

func (r *round) judge(t *testing.T) {
	slices.Sort(r.acked)
	end := r.closed.Last // the event that closes it
	if r.mode == streamclose.Archive {
		end++
	}
	var want []int64 // versions appended before the close
	for v := range end {
		want = append(want, v)
	}
	cut, _ := slices.BinarySearch(r.acked, end)
	if !slices.Equal(r.acked[:cut], want) {
		t.Errorf("appends acknowledged before the close at %d: %v", end, r.acked)
	}
	if r.exports && !slices.Equal(r.seen, want) {
		t.Errorf("export got %v, want %v", r.seen, want)
	}
	after := r.acked[cut:]
	if r.mode != streamclose.Restart && len(after) > 0 {
		t.Errorf("appends acknowledged after the close at %d: %v", end, after)
	}
	all, err := holdfast.Collect(stream.Read(ctx, r.hf, r.stream, 0))
	if err != nil {
		t.Error(err)
	}
	var have []int64
	for _, e := range all {
		have = append(have, int64(e.Version))
	}
	expected := want
	if r.mode != streamclose.Archive {
		expected = append([]int64{r.closed.Last}, after...)
	}
	if !slices.Equal(have, expected) {
		t.Errorf("stream has versions %v, want %v", have, expected)
	}
}

// TestOneCloserWins verifies that of many concurrent closes in all modes one exports and
// closes the stream, and that the others are refused or return the result of the winner.
func TestOneCloserWins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for i := range 20 {
			name := fmt.Sprint("s", i)
			add(t, hf, name, 3)
			var exports atomic.Int32
			answers := make([]streamclose.Closed, 8)
			won, lost := holdfasttest.Race(t, 8, func(i int) (err error) {
				answers[i], err = closeAt(hf, name, modes[i%2], func(context.Context, int64, int64) error {
					exports.Add(1)
					return nil
				})
				return err
			})
			for _, err := range lost {
				refused(t, err, fault.Conflict)
			}
			results := slices.Compact(slices.DeleteFunc(answers, func(c streamclose.Closed) bool { return c.Stream == "" }))
			if won == 0 || exports.Load() != 1 || len(results) != 1 {
				t.Fatalf("%d closes succeeded, %d exports, results %+v", won, exports.Load(), results)
			}
		}
	})
}

// TestOneRestartWins verifies that of many concurrent restarts all that cover the
// stream's version with the winner's snapshot return its result, that all others are
// refused, and that the stream is restarted once.
func TestOneRestartWins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for i := range 20 {
			name := fmt.Sprint("s", i)
			add(t, hf, name, 3)
			errs := make([]error, 9)
			holdfasttest.Race(t, len(errs), func(i int) error {
				version, snapshot := int64(2), fmt.Sprint(i%3)
				if i%3 == 2 {
					version, snapshot = 1, "0"
				}
				got, err := restart(hf, name, version, snapshot)
				if err == nil && (got.First != 3 || got.Last != 3) {
					t.Errorf("restart returned %+v, want version 3", got)
				}
				errs[i] = err
				return err
			})
			all, err := holdfast.Collect(stream.Read(ctx, hf, name, 0))
			if err != nil || len(all) != 1 || all[0].Version != 3 {
				t.Fatalf("got events %+v, error %v, want only version 3", all, err)
			}
			for i, err := range errs {
				if fmt.Sprint(i%3) == string(all[0].Data) {
					refused(t, err, "")
				} else {
					refused(t, err, fault.Concurrency)
				}
			}
		}
	})
}

// TestWhatWaitsForARestart verifies on PostgreSQL that an append which waits for a
// restart follows its snapshot, that a restart which waits for an append is refused, and
// that a restart which waits for the same restart and an append returns the same result.
func TestWhatWaitsForARestart(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	hf := holdfasttest.OpenOn(t, holdfasttest.At(url))
	for name, c := range map[string]struct {
		order string
		codes []fault.Code
		reads string
	}{
		"append behind":    {"ra", []fault.Code{"", ""}, "3:$snapshot 4:b"},
		"append before":    {"ar", []fault.Code{"", fault.Concurrency}, "0:a 1:a 2:a 3:b"},
		"twin":             {"rar", []fault.Code{"", "", ""}, "3:$snapshot 4:b"},
		"another snapshot": {"rao", []fault.Code{"", "", fault.Concurrency}, "3:$snapshot 4:b"},
	} {
		add(t, hf, name, 3)
		restarts := func(snapshot string) func() error {
			return func() error {
				got, err := restart(hf, name, 2, snapshot)
				if err == nil && (got.First != 3 || got.Last != 3) {
					t.Errorf("%s: restart returned %+v, want version 3", name, got)
				}
				return err
			}
		}
		does := map[rune]func() error{'r': restarts(`1`), 'o': restarts(`2`), 'a': func() error {
			_, err := stream.Append(ctx, hf, name, stream.Any, stream.Event{Name: "b"})
			return err
		}}
		var calls []func() error
		for _, what := range c.order {
			calls = append(calls, does[what])
		}
		for i, err := range storetest.Queue(t, url, `SELECT FROM holdfast.stream WHERE name = $1 FOR UPDATE`, []any{name}, nil, calls...) {
			if fault.CodeOf(err) != c.codes[i] {
				t.Errorf("%s, call %d: got error %v", name, i, err)
			}
		}
		reads(t, hf, name, c.reads)
	}
}
