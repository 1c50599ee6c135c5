package books_test

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
	"github.com/holdfast-go/holdfast/internal/books"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

var modes = []books.Mode{books.Archive, books.Tombstone, books.Restart}

// TestCloseRacesAppends verifies, in many rounds, that every append that was
// acknowledged lies before the close, where the export sees it, or after a
// restart, where the stream has it; that every other one was refused because the
// stream is closed; and that versions go on without a gap.
func TestCloseRacesAppends(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		rounds := testlevel.Pick(50, 500, 5000)
		var before, after, refusals int
		for i := range rounds {
			r := &round{hf: hf, stream: fmt.Sprint("s", i), mode: modes[i%3], exports: i%2 == 0}
			r.run(t)
			before, after, refusals = before+int(r.closed.Last), after+len(r.acked), refusals+r.refused
			if t.Failed() {
				t.Fatalf("round %d: %+v", i, r.closed)
			}
		}
		t.Logf("%d events before the closes, %d appends acknowledged in all, %d refused", before, after, refusals)
		if refusals == 0 || before <= rounds {
			t.Error("the appends and the closes did not meet")
		}
	})
}

type round struct {
	hf      *holdfast.Engine
	stream  string
	mode    books.Mode
	exports bool

	closed books.Closed
	seen   []int64 // by the export

	mu      sync.Mutex
	acked   []int64
	refused int
}

func (r *round) run(t *testing.T) {
	add(t, r.hf, r.stream, 1)
	r.acked = []int64{0}
	_, lost := holdfasttest.Race(t, 4, func(i int) (err error) {
		if i == 0 {
			r.closed, err = closeAt(r.hf, r.stream, r.mode, r.export())
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
		all, err := stream.Read(ctx, r.hf, r.stream, stream.Version(first), 0)
		for _, e := range all {
			r.seen = append(r.seen, int64(e.Version))
		}
		if err == nil && int64(len(all)) != last-first+1 {
			err = fmt.Errorf("%d events from %d to %d", len(all), first, last)
		}
		return err
	}
}

func (r *round) append() error {
	for range 4 {
		v, err := stream.Append(ctx, r.hf, r.stream, stream.Any, stream.Event{Name: "a"})
		if err != nil && fault.CodeOf(err) != fault.StreamClosed {
			return err
		}
		r.mu.Lock()
		if err == nil {
			r.acked = append(r.acked, int64(v))
		} else {
			r.refused++
		}
		r.mu.Unlock()
	}
	return nil
}

func (r *round) judge(t *testing.T) {
	slices.Sort(r.acked)
	end := r.closed.Last // the event that closes it
	if r.mode == books.Archive {
		end++
	}
	var want []int64 // what was appended before the close
	for v := range end {
		want = append(want, v)
	}
	cut, _ := slices.BinarySearch(r.acked, end)
	if !slices.Equal(r.acked[:cut], want) {
		t.Errorf("acknowledged before the close at %d: %v", end, r.acked)
	}
	if r.exports && !slices.Equal(r.seen, want) {
		t.Errorf("the export saw %v of %v", r.seen, want)
	}
	after := r.acked[cut:]
	if r.mode != books.Restart && len(after) > 0 {
		t.Errorf("acknowledged after the close at %d: %v", end, after)
	}
	all, err := stream.Read(ctx, r.hf, r.stream, 0, 0)
	if err != nil {
		t.Error(err)
	}
	var have []int64
	for _, e := range all {
		have = append(have, int64(e.Version))
	}
	kept := want
	if r.mode != books.Archive {
		kept = append([]int64{r.closed.Last}, after...)
	}
	if !slices.Equal(have, kept) {
		t.Errorf("the stream has %v, want %v", have, kept)
	}
}

// TestOneCloserWins verifies that of many who close a stream at once, in all
// ways, one exports and closes it, and that the others are refused, or get the
// answer of the one that won.
func TestOneCloserWins(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for i := range 20 {
			name := fmt.Sprint("s", i)
			add(t, hf, name, 3)
			var exports atomic.Int32
			answers := make([]books.Closed, 8)
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
			told := slices.Compact(slices.DeleteFunc(answers, func(c books.Closed) bool { return c.Stream == "" }))
			if won == 0 || exports.Load() != 1 || len(told) != 1 {
				t.Fatalf("%d won, %d exported, and were told %+v", won, exports.Load(), told)
			}
		}
	})
}
